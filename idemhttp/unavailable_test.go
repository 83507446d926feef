package idemhttp_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// wantUnavailable sends one request whose handler turned do's error into 409.
func wantUnavailable(t *testing.T, r *rig, do attempt) {
	t.Helper()
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{Limit: 20 * time.Second}, &runs, do)
	r.serve()
	got := r.send(post("/x", "k", "{}"))
	r.want(got, 503, "unavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
	r.wantFree()
	r.wantRows("select count(*) from orders", 0)
	eventually(t, "the connection is given back", func() bool { return r.pool.Stat().AcquiredConns() == 0 })
}

func TestP12_cutConnectionIsUnavailable(t *testing.T) {
	t.Run("by its own statement", func(t *testing.T) {
		wantUnavailable(t, newRig(t), execute("select pg_terminate_backend(pg_backend_pid())"))
	})
	t.Run("between two statements", func(t *testing.T) {
		r := newRig(t)
		wantUnavailable(t, r, func(ctx context.Context, tx pgx.Tx) error {
			terminate(t, r, tx)
			_, err := tx.Exec(ctx, "select 1")
			return err
		})
	})
	t.Run("after the last statement", func(t *testing.T) {
		r := newRig(t)
		wantUnavailable(t, r, func(_ context.Context, tx pgx.Tx) error {
			terminate(t, r, tx)
			return nil // and the handler goes on to 201
		})
	})
	t.Run("by the handler's own timeout", func(t *testing.T) {
		wantUnavailable(t, newRig(t), func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, "select pg_sleep(10)")
			return err
		})
	})
}

// terminate ends tx's backend and waits until it is gone.
func terminate(t *testing.T, r *rig, tx pgx.Tx) {
	if _, err := r.pool.Exec(context.Background(), "select pg_terminate_backend($1, 10000)", backendOf(t, tx)); err != nil {
		t.Error(err)
	}
}

// backendOf asks for the number of tx's backend: what the connection was told
// when it was made is a pooler's, if there is one.
func backendOf(t testing.TB, tx pgx.Tx) int32 {
	var pid int32
	if err := tx.QueryRow(context.Background(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Error(err)
	}
	return pid
}

func TestP12_lockTimeoutIsUnavailable(t *testing.T) {
	r := newRig(t)
	accounts(r)
	holder, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release := func() { _ = holder.Rollback(context.Background()) }
	defer release()
	if _, err := holder.Exec(t.Context(), "select from accounts where id = 1 for update"); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{}, &runs, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '50ms'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update accounts set balance = 0 where id = 1")
		return err
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 503, "unavailable")
	r.wantFree()
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
	release()
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	r.wantRows("select count(*) from orders", 1)
}

func TestP12_statementTimeoutIsUnavailable(t *testing.T) {
	wantUnavailable(t, newRig(t), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = '50ms'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "select pg_sleep(10)")
		return err
	})
}

func TestP12_readOnlyIsUnavailable(t *testing.T) {
	wantUnavailable(t, newRig(t), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set transaction read only"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "insert into orders (customer, amount) values (1, 1)")
		return err
	})
}

// TestP12_failureIsSeenHoweverItIsMet: a lost race says nothing about the
// request, through whatever method of pgx.Tx the handler met it.
func TestP12_failureIsSeenHoweverItIsMet(t *testing.T) {
	fails := "select 1, raise_code('55P03')"
	for name, do := range map[string]attempt{
		"Query": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, fails)
			if err != nil {
				return err
			}
			rows.Close()
			return rows.Err()
		},
		"QueryRow": func(ctx context.Context, tx pgx.Tx) error {
			var n int
			return tx.QueryRow(ctx, fails).Scan(&n, nil)
		},
		"SendBatch": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue("select 1")
			b.Queue(fails)
			return tx.SendBatch(ctx, b).Close()
		},
		"SendBatch with functions": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			var n int
			b.Queue(fails).QueryRow(func(row pgx.Row) error { return row.Scan(&n, nil) })
			return tx.SendBatch(ctx, b).Close()
		},
		"CopyFrom": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"coded"}, []string{"code"}, pgx.CopyFromRows([][]any{{"55P03"}}))
			return err
		},
		"a savepoint": func(ctx context.Context, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
				_, err := nested.Exec(ctx, fails)
				return err
			})
		},
		"a failure after it": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, fails)
			_, err := tx.Exec(ctx, "select 1") // 25P02
			return err
		},
		"the raw connection": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, fails)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if _, err := r.pool.Exec(t.Context(), `
				create function raise_code(code text) returns text language plpgsql as $$
					begin raise exception 'made' using errcode = code; end $$;
				create table coded (code text check (raise_code(code) is null))`); err != nil {
				t.Fatal(err)
			}
			wantUnavailable(t, r, do)
		})
	}
}

func TestP12_everyTransientCodeIsUnavailableAndNoOther(t *testing.T) {
	r := newRig(t)
	transient := []string{"08006", "25006", "25P03", "25P04", "40002", "40003", "53100", "53200", "53300", "53400", "55P03", "57014", "57P03", "58030", "XX000", "XX001"}
	definite := []string{"22012", "23505", "23514", "42501", "P0001", "55006"}
	var runs atomic.Int64
	for _, code := range append(transient, definite...) {
		mapping(r, "/"+code, idemhttp.Route{}, &runs, execute(raise(code)))
	}
	r.serve()
	for _, code := range transient {
		r.want(r.send(post("/"+code, code, "{}")), 503, "unavailable")
		r.wantFree()
	}
	for _, code := range definite {
		r.want(r.send(post("/"+code, code, "{}")), 409, "")
		if got := r.send(post("/"+code, code, "{}")); got.status != 409 || !got.replayed() {
			t.Errorf("%s: the repeat got %d, replayed %v, want 409, true", code, got.status, got.replayed())
		}
	}
	r.wantRows("select count(*) from orders", 0)
}

func TestP12_ownSavepointAndSuccessIsKept(t *testing.T) {
	for _, code := range []string{"40001", "40P01", "55P03", "57014"} {
		t.Run(code, func(t *testing.T) {
			r := newRig(t)
			var runs atomic.Int64
			survive := func(ctx context.Context, tx pgx.Tx) error {
				err := pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return execute(raise(code))(ctx, nested) })
				if err == nil {
					t.Error("the statement did not fail")
				}
				return nil
			}
			mapping(r, "/x", idemhttp.Route{}, &runs, survive)
			mapping(r, "/refuses", idemhttp.Route{}, &runs, func(ctx context.Context, tx pgx.Tx) error {
				_ = survive(ctx, tx)
				return context.Canceled // 409
			})
			r.serve()
			r.want(r.send(post("/x", "k", "{}")), 201, "")
			if got := r.send(post("/x", "k", "{}")); got.status != 201 || !got.replayed() || runs.Load() != 1 && !r.lazy {
				t.Errorf("the repeat got %d, replayed %v, after %d runs", got.status, got.replayed(), runs.Load())
			}
			r.wantRows("select count(*) from orders", 1)
			r.want(r.send(post("/refuses", "r", "{}")), 503, "unavailable")
			r.wantRows("select count(*) from idem.idempotency_keys", 1)
			r.wantRows("select count(*) from orders", 1)
		})
	}
}
