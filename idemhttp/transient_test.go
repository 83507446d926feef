package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// accounts gives the rig two rows to be locked.
func accounts(r *rig) {
	if _, err := r.pool.Exec(r.t.Context(), "create table accounts (id int primary key, balance int not null)"); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.pool.Exec(r.t.Context(), "insert into accounts values (1, 100), (2, 100)"); err != nil {
		r.t.Fatal(err)
	}
}

// attempt is one statement of a handler that maps every database error to 409.
type attempt func(ctx context.Context, tx pgx.Tx) error

// mapping serves an order and then what do does.
func mapping(r *rig, path string, route idemhttp.Route, runs *atomic.Int64, do attempt) {
	r.handle(path, route, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		if fail409(w, insertOrder(req)) || fail409(w, do(req.Context(), idem.Tx(req.Context()))) {
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
}

func execute(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
}

func TestP12_deadlockIsRunAgain(t *testing.T) {
	r := newRig(t)
	accounts(r)
	var runs atomic.Int64
	holding, both, survived := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	handler := func(first, second int) attempt {
		return func(ctx context.Context, tx pgx.Tx) error {
			again := runs.Load() > 2
			if again {
				<-survived // the other has both rows, so that this one cannot meet it a second time
			}
			if _, err := tx.Exec(ctx, "update accounts set balance = balance - 1 where id = $1", first); err != nil {
				return err
			}
			if !again {
				holding <- struct{}{}
				<-both
			}
			_, err := tx.Exec(ctx, "update accounts set balance = balance - 1 where id = $1", second)
			if err == nil && !again {
				close(survived)
			}
			return err
		}
	}
	mapping(r, "/up", idemhttp.Route{}, &runs, handler(1, 2))
	mapping(r, "/down", idemhttp.Route{}, &runs, handler(2, 1))
	r.serve()
	up, down := r.begin(post("/up", "up", "{}")), r.begin(post("/down", "down", "{}"))
	<-holding
	<-holding
	close(both)
	r.want(<-up, 201, "")
	r.want(<-down, 201, "")
	if n := runs.Load(); n != 3 {
		t.Errorf("the handlers ran %d times, want 3: one of the two again", n)
	}
	r.wantRows("select count(*) from orders", 2)
	r.wantRows("select sum(balance)::int from accounts", 196)
	r.wantRows("select count(*) from idem.idempotency_keys where response_status = 201", 2)
}

func TestP12_serializationFailureIsRunAgain(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t)
			accounts(r)
			var runs atomic.Int64
			route := idemhttp.Route{TxOptions: pgx.TxOptions{IsoLevel: level}}
			mapping(r, "/x", route, &runs, func(ctx context.Context, tx pgx.Tx) error {
				var isolation string
				if err := tx.QueryRow(ctx, "show transaction_isolation").Scan(&isolation); err != nil || isolation != string(level) {
					panic(fmt.Sprint("isolation is ", isolation, err))
				}
				if runs.Load() == 1 { // somebody else is faster
					if _, err := r.pool.Exec(ctx, "update accounts set balance = 50 where id = 1"); err != nil {
						panic(err)
					}
				}
				_, err := tx.Exec(ctx, "update accounts set balance = balance - 1 where id = 1")
				return err
			})
			r.serve()
			r.want(r.send(post("/x", "k", "{}")), 201, "")
			if n := runs.Load(); n != 2 {
				t.Errorf("the handler ran %d times, want 2", n)
			}
			r.wantRows("select balance from accounts where id = 1", 49)
			r.wantRows("select count(*) from orders", 1)
		})
	}
}

func TestP12_writeSkewIsRunAgain(t *testing.T) {
	r := newRig(t)
	accounts(r)
	var runs atomic.Int64
	route := idemhttp.Route{TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}}
	mapping(r, "/x", route, &runs, func(ctx context.Context, tx pgx.Tx) error {
		if err := withdraw(ctx, tx, 1); err != nil || runs.Load() > 1 {
			return err
		}
		return pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(other pgx.Tx) error {
			return withdraw(ctx, other, 2)
		})
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
	r.wantRows("select count(*) from orders", 1)
}

// withdraw reads all accounts and writes one of them.
func withdraw(ctx context.Context, tx pgx.Tx, id int) error {
	var sum int
	if err := tx.QueryRow(ctx, "select sum(balance) from accounts").Scan(&sum); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "update accounts set balance = balance - $2 / 10 where id = $1", id, sum)
	return err
}

func TestP12_serializationFailureOfCommitIsRunAgain(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	if _, err := r.pool.Exec(t.Context(), `create sequence tries;
		create function refuse_once() returns trigger language plpgsql as $$ begin
			if nextval('tries') = 1 then raise exception 'at commit' using errcode = '40001'; end if; return null; end $$;
		create constraint trigger at_commit after insert on orders deferrable initially deferred
			for each row execute function refuse_once()`); err != nil {
		t.Fatal(err)
	}
	mapping(r, "/x", idemhttp.Route{}, &runs, func(context.Context, pgx.Tx) error { return nil })
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
	r.wantRows("select count(*) from orders", 1)
}

func TestP12_whatFailsAtEveryRunIsUnavailable(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{}, &runs, execute(raise("40P01")))
	r.serve()
	got := r.send(post("/x", "k", "{}"))
	r.want(got, 503, "unavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	if n := runs.Load(); n != 4 {
		t.Errorf("the handler ran %d times, want 4: three re-runs", n)
	}
	reruns := 0
	r.mu.Lock()
	for _, e := range r.events {
		if e.Kind == idem.EventRerun {
			reruns++
		}
	}
	r.mu.Unlock()
	if reruns != 3 {
		t.Errorf("%d re-runs were told, want 3", reruns)
	}
	r.wantFree()
	r.wantRows("select count(*) from orders", 0)
}

func TestP12_rerunsEndWithTheLimit(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{Limit: 300 * time.Millisecond}, &runs, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, raise("40001"))
		<-ctx.Done()
		return err
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 503, "unavailable")
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once: its limit spans all runs", n)
	}
	r.wantFree()
}

// raise is a statement that fails with a code.
func raise(code string) string {
	return fmt.Sprintf("do $$ begin raise exception 'made' using errcode = '%s'; end $$", code)
}

// A failure that the handler has rolled back to a savepoint, and so may answer
// for, does not hide one after which the handler must run again.
func TestP12_serializationFailureAfterALockTimeoutIsRunAgain(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{}, &runs, func(ctx context.Context, tx pgx.Tx) error {
		if runs.Load() > 1 {
			return nil
		}
		if err := pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return execute(raise("55P03"))(ctx, nested) }); err == nil {
			panic("the lock was to be had")
		}
		return execute(raise("40001"))(ctx, tx)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
	r.wantRows("select count(*) from orders", 1)
}
