package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// strays are what a goroutine that its handler has left behind does with the
// transaction: each writes rows of customer id, at most ten at a time.
var strays = map[string]func(ctx context.Context, tx pgx.Tx, id int) error{
	"Exec": func(ctx context.Context, tx pgx.Tx, id int) error {
		_, err := tx.Exec(ctx, "insert into orders (customer, amount) values ($1, 1)", id)
		return err
	},
	"Query": func(ctx context.Context, tx pgx.Tx, id int) error {
		rows, err := tx.Query(ctx, "insert into orders (customer, amount) select $1, g from generate_series(1, 10) as g returning id, repeat('x', 5000)", id)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(nil, nil); err != nil {
				return err
			}
		}
		_ = rows.CommandTag()
		return rows.Err()
	},
	"QueryRow": func(ctx context.Context, tx pgx.Tx, id int) error {
		return tx.QueryRow(ctx, "insert into orders (customer, amount) values ($1, 1) returning id", id).Scan(nil)
	},
	"SendBatch": func(ctx context.Context, tx pgx.Tx, id int) error {
		b := &pgx.Batch{}
		for range 5 {
			b.Queue("insert into orders (customer, amount) values ($1, 1)", id)
		}
		b.Queue("select g from generate_series(1, 100) as g")
		results := tx.SendBatch(ctx, b)
		defer func() { _ = results.Close() }()
		for range 5 {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	},
	"savepoints": func(ctx context.Context, tx pgx.Tx, id int) error {
		return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
			_, err := nested.Exec(ctx, "insert into orders (customer, amount) values ($1, 1)", id)
			return err
		})
	},
}

// oneConnection is a pool whose connection the next request gets at once, so
// that what strays on it would be committed with another's work.
func oneConnection(t *testing.T) *rig {
	t.Helper()
	return rigOn(t, poolOf(t, pgtest.NewURL(t), 1))
}

func TestStray_goroutineOfAHandlerThatHasReturnedWritesNothing(t *testing.T) {
	for name, stray := range strays {
		t.Run(name, func(t *testing.T) {
			r := oneConnection(t)
			var left sync.WaitGroup
			r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				tx, begun := idem.Tx(req.Context()), make(chan struct{})
				var id, status int
				_, _ = fmt.Sscan(req.Header.Get("X-Id"), &id, &status)
				left.Go(func() {
					err := stray(context.Background(), tx, id)
					close(begun)
					for n := 0; err == nil && n < 10_000; n++ {
						err = stray(context.Background(), tx, id)
					}
				})
				<-begun // it works on the transaction while the handler returns
				w.WriteHeader(status)
			})
			r.serve()
			wantNothingStray(r, &left)
		})
	}
}

// wantNothingStray sends requests whose handlers leave a goroutine behind, and
// counts the rows of each when it was answered and at the end.
func wantNothingStray(r *rig, left *sync.WaitGroup) {
	r.t.Helper()
	const each = 40
	rows := map[int]int{}
	count := func(id int) (n int) {
		if err := r.pool.QueryRow(context.Background(), "select count(*) from orders where customer = $1", id).Scan(&n); err != nil {
			r.t.Fatal(err)
		}
		return n
	}
	for id := range each {
		status := []int{422, 201, 409}[id%3]
		got := r.send(post("/x", fmt.Sprint("k", id), "{}").with("X-Id", fmt.Sprint(id, status)))
		if got.err != nil || got.status != status {
			r.t.Fatalf("request %d got %d %s %v, want %d", id, got.status, got.body, got.err, status)
		}
		rows[id] = count(id)
		if (rows[id] > 0) != (status == 201) {
			r.t.Errorf("request %d was answered %d and has %d rows", id, status, rows[id])
		}
	}
	left.Wait()
	for id := range each {
		if n := count(id); n != rows[id] {
			r.t.Errorf("request %d had %d rows when it was answered and has %d now", id, rows[id], n)
		}
	}
}

// A TimeoutHandler within the guard answers for a handler that goes on.
func TestStray_timeoutHandlerWithinTheGuardLeavesWholeTransactions(t *testing.T) {
	for name, ctxOf := range map[string]func(*http.Request) context.Context{
		"that heeds its context": (*http.Request).Context,
		"that does not":          func(req *http.Request) context.Context { return context.WithoutCancel(req.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var left sync.WaitGroup
			const whole = 20
			inner := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				left.Add(1)
				defer left.Done()
				for range whole {
					if strays["Exec"](ctxOf(req), idem.Tx(req.Context()), len(req.URL.Path)) != nil {
						return
					}
				}
				w.WriteHeader(http.StatusCreated)
			})
			r.handle("/x", idemhttp.Route{}, http.TimeoutHandler(inner, 8*time.Millisecond, "slow").ServeHTTP)
			r.serve()
			var clients sync.WaitGroup
			for client := range 4 {
				clients.Go(func() {
					for i := range 50 {
						got := r.send(post("/x", fmt.Sprint("k", client, "-", i), "{}"))
						if got.err != nil || got.status != 201 && got.status != 503 {
							t.Errorf("got %d %s %v, want 201 or 503", got.status, got.body, got.err)
						}
					}
				})
			}
			clients.Wait()
			left.Wait()
			var rows, answers int
			if err := r.pool.QueryRow(t.Context(), `select (select count(*) from orders),
				(select count(*) from idem.idempotency_keys where response_status = 201)`).Scan(&rows, &answers); err != nil {
				t.Fatal(err)
			}
			if rows != whole*answers {
				t.Errorf("%d rows for %d remembered answers, want %d for each", rows, answers, whole)
			}
		})
	}
}
