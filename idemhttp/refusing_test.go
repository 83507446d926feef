package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// wantRefused sends a request to a server that refuses, whose handler turns every
// error into 409, and one whose handler writes nothing; and both again once the
// server serves.
func wantRefused(r *rig, serves func()) {
	r.t.Helper()
	for range 2 {
		for _, path := range []string{"/writes", "/reads"} {
			got := r.send(post(path, path, "{}"))
			r.want(got, 503, "unavailable")
			if got.header.Get("Retry-After") == "" {
				r.t.Error("Retry-After is missing")
			}
		}
	}
	serves()
	r.wantFree()
	r.wantRows("select count(*) from orders", 0)
	for _, path := range []string{"/writes", "/reads"} {
		got := r.send(post(path, path, "{}"))
		r.want(got, 201, "")
		if got.replayed() {
			r.t.Errorf("%s: the first definite answer is a replay", path)
		}
	}
	r.wantRows("select count(*) from orders", 1)
}

func refusable(r *rig) {
	var runs atomic.Int64
	mapping(r, "/writes", idemhttp.Route{}, &runs, func(context.Context, pgx.Tx) error { return nil })
	r.handle("/reads", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	r.serve()
}

func TestD4_readOnlyPrimaryStoresNothing(t *testing.T) {
	url := pgtest.Direct(t, pgtest.NewURL(t)) // a pooler keeps sessions from before
	r := rigOn(t, pgtest.Pool(t, url))
	refusable(r)
	readOnly := func(setting string) {
		t.Helper()
		conn, err := r.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		database := pgx.Identifier{conn.Conn().Config().Database}.Sanitize()
		for _, sql := range []string{
			"set default_transaction_read_only = off",
			fmt.Sprintf("alter database %s set default_transaction_read_only = %s", database, setting),
		} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		r.pool.Reset() // the setting is for new sessions
	}
	readOnly("on")
	wantRefused(r, func() { readOnly("off") })
}

func TestD4_timeoutsStoreNothing(t *testing.T) {
	r := newRig(t)
	accounts(r)
	if _, err := r.pool.Exec(t.Context(), `
		create function look() returns trigger language plpgsql as $$ begin perform from accounts; return null; end $$;
		create constraint trigger look after insert on orders deferrable initially deferred for each row execute function look()`); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	after := func(setting, sql string) attempt {
		return func(ctx context.Context, tx pgx.Tx) error {
			if err := execute("set local "+setting)(ctx, tx); err != nil {
				return err
			}
			return execute(sql)(ctx, tx)
		}
	}
	mapping(r, "/statement_timeout", idemhttp.Route{}, &runs, after("statement_timeout = '100ms'", "select from accounts"))
	mapping(r, "/lock_timeout", idemhttp.Route{}, &runs, after("lock_timeout = '100ms'", "select from accounts"))
	mapping(r, "/lock_timeout_of_commit", idemhttp.Route{}, &runs, execute("set local lock_timeout = '100ms'"))
	r.serve()
	for _, path := range []string{"/statement_timeout", "/lock_timeout", "/lock_timeout_of_commit"} {
		runs.Store(0)
		holder, err := r.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.Exec(t.Context(), "lock table accounts"); err != nil {
			t.Fatal(err)
		}
		r.want(r.send(post(path, path, "{}")), 503, "unavailable")
		if n := runs.Load(); n != 1 {
			t.Errorf("%s: the handler ran %d times, want once", path, n)
		}
		r.wantRows("select count(*) from idem.idempotency_keys where key = $1", 0, path)
		if err := holder.Rollback(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.want(r.send(post(path, path, "{}")), 201, "")
	}
	r.wantRows("select count(*) from orders", 3)
}

func TestD4_tooManyConnectionsStoreNothing(t *testing.T) {
	s := newServer(t, map[string]string{"max_connections": "12"})
	r := rigOn(t, pgtest.Pool(t, s.url()))
	refusable(r)
	r.pool.Reset() // none of the guard's is open
	eventually(t, "the guard's connections are closed", func() bool { return r.pool.Stat().TotalConns() == 0 })
	all := s.allConnections()
	wantRefused(r, func() {
		for _, conn := range all {
			if err := conn.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

// allConnections opens connections until the server has no more.
func (s *server) allConnections() (all []*pgx.Conn) {
	s.t.Helper()
	for range 100 {
		conn, err := pgx.Connect(context.Background(), s.running.URL())
		if err != nil {
			return all
		}
		all = append(all, conn)
	}
	s.t.Fatal("the server has connections without end")
	return nil
}
