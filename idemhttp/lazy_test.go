package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

const insertOne = "insert into orders (customer, amount) values (1, 1)"

// firstStatements are what a handler's first statement can be. Each writes one
// order, in one statement or a few; the first error counts.
var firstStatements = map[string]attempt{
	"Exec": execute(insertOne),
	"Exec with arguments": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertOne+" returning $1::int", 1)
		return err
	},
	"Exec, simple": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertOne, pgx.QueryExecModeSimpleProtocol)
		return err
	},
	"Exec, no cache": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertOne, pgx.QueryExecModeExec)
		return err
	},
	"several":   execute("select 1; " + insertOne + "; select 2"),
	"a comment": execute("-- one; two\n" + insertOne),
	"Query":     queried(insertOne + " returning id"),
	"Query, result format": func(ctx context.Context, tx pgx.Tx) error {
		return closedWith(tx.Query(ctx, insertOne+" returning id", pgx.QueryResultFormats{pgx.BinaryFormatCode}))
	},
	"QueryRow": func(ctx context.Context, tx pgx.Tx) error {
		var id int64
		return tx.QueryRow(ctx, insertOne+" returning id").Scan(&id)
	},
	"SendBatch": batched(insertOne, "select 1"),
	"an empty batch": func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.SendBatch(ctx, &pgx.Batch{}).Close(); err != nil {
			return err
		}
		return execute(insertOne)(ctx, tx)
	},
	"CopyFrom": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"customer", "amount"}, pgx.CopyFromRows([][]any{{int64(1), int64(1)}}))
		return err
	},
	"Begin": func(ctx context.Context, tx pgx.Tx) error {
		return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return execute(insertOne)(ctx, nested) })
	},
	"Prepare": func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Prepare(ctx, "one", insertOne); err != nil {
			return err
		}
		return execute("one")(ctx, tx)
	},
	"Conn": func(ctx context.Context, tx pgx.Tx) error {
		conn := tx.Conn()
		if conn == nil {
			return execute(insertOne)(ctx, tx) // which says why
		}
		_, err := conn.Exec(ctx, insertOne)
		return err
	},
	// It is prepared together with the claim, when the table is not there yet.
	"one that cannot be prepared": func(ctx context.Context, tx pgx.Tx) error {
		err := execute("insert into nowhere values (1)")(ctx, tx)
		if errors.Is(err, idem.ErrAnswered) || err == nil {
			return err
		}
		return errCannotBePrepared
	},
}

var errCannotBePrepared = errors.New("as it should be")

func queried(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error { return closedWith(tx.Query(ctx, sql)) }
}

func closedWith(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// lazily serves handlers whose first statement is do; what they met at it, and
// at the one after it, is kept.
type lazily struct {
	*rig
	mu            sync.Mutex
	first, second []error
	do            attempt
	answer        func(w http.ResponseWriter) // on a repeat
}

func newLazily(r *rig, do attempt) *lazily {
	l := &lazily{rig: r, do: do}
	l.handle("/x", idemhttp.Route{LazyClaim: true, Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
		tx, ctx := idem.Tx(req.Context()), req.Context()
		first := do(ctx, tx)
		var second error
		if first != nil && !errors.Is(first, idem.ErrAnswered) && !errors.Is(first, errCannotBePrepared) {
			panic(first)
		}
		if !errors.Is(first, errCannotBePrepared) {
			second = execute("select 1")(ctx, tx)
		}
		l.mu.Lock()
		l.first, l.second = append(l.first, first), append(l.second, second)
		l.mu.Unlock()
		switch {
		case errors.Is(first, errCannotBePrepared):
			http.Error(w, "no such table", http.StatusConflict)
		case errors.Is(first, idem.ErrAnswered):
			l.answer(w)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "made")
		}
	})
	l.serve()
	return l
}

// repeats are what the handler of a repeat may answer, to no effect.
var repeats = map[string]func(w http.ResponseWriter){
	"nothing": func(http.ResponseWriter) {},
	"500":     func(w http.ResponseWriter) { http.Error(w, "answered", http.StatusInternalServerError) },
	"201":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); _, _ = io.WriteString(w, "another") },
	"panic":   func(http.ResponseWriter) { panic("answered") },
	"abort":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
}

func TestLazyClaim_travelsWithWhateverIsFirst(t *testing.T) {
	for name, do := range firstStatements {
		t.Run(name, func(t *testing.T) {
			l := newLazily(newRig(t), do)
			first := l.send(post("/x", "k", "{}"))
			want, orders := 201, 1
			if strings.Contains(name, "cannot") {
				want, orders = 409, 0
			}
			l.want(first, want, "")
			for name, answer := range repeats {
				l.answer = answer
				if got := l.send(post("/x", "k", "{}")); got.status != want || got.body != first.body || !got.replayed() {
					t.Errorf("a repeat whose handler answers %s got %d %q, replayed %v", name, got.status, got.body, got.replayed())
				}
			}
			l.want(l.send(post("/x", "k", "another")), 409, "key-mismatch")
			l.wantRows("select count(*) from orders", orders)
			l.wantRows("select count(*) from idem.idempotency_keys where response_status = $1", 1, want)
			l.wantAnswered(1)
			eventually(t, "the connections are given back", func() bool { return l.pool.Stat().AcquiredConns() == 0 })
		})
	}
}

// wantAnswered wants every statement of all runs but the first n to have returned
// idem.ErrAnswered.
func (l *lazily) wantAnswered(n int) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.first) < n+1 {
		l.t.Fatalf("the handler ran %d times, want more than %d: its Go code runs on a repeat", len(l.first), n)
	}
	for i := range l.first[n:] {
		if f, s := l.first[n+i], l.second[n+i]; !errors.Is(f, idem.ErrAnswered) || !errors.Is(s, idem.ErrAnswered) {
			l.t.Errorf("on a repeat the first statement returned %v, the second %v; want idem.ErrAnswered", f, s)
		}
	}
}

func TestLazyClaim_expiredAnswerRunsAsNew(t *testing.T) {
	for name, do := range firstStatements {
		if strings.Contains(name, "cannot") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := newLazily(newRig(t), do)
			l.want(l.send(post("/x", "k", "{}")), 201, "")
			if _, err := l.pool.Exec(t.Context(), "update idem.idempotency_keys set created_at = created_at - interval '1 year', expires_at = expires_at - interval '1 year'"); err != nil {
				t.Fatal(err)
			}
			if got := l.send(post("/x", "k", "{}")); got.status != 201 || got.replayed() {
				t.Errorf("a request long after got %d, replayed %v", got.status, got.replayed())
			}
			l.wantRows("select count(*) from orders", 2)
			l.wantRows("select count(*) from idem.idempotency_keys where expires_at > now()", 1)
		})
	}
}

func TestLazyClaim_noStatementAtAll(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{LazyClaim: true}, func(w http.ResponseWriter, req *http.Request) {
		said, _ := io.ReadAll(req.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(said)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "one")), 201, "")
	if got := r.send(post("/x", "k", "one")); got.status != 201 || got.body != "one" || !got.replayed() {
		t.Errorf("the repeat got %d %q, replayed %v", got.status, got.body, got.replayed())
	}
	r.want(r.send(post("/x", "k", "other")), 409, "key-mismatch")
	r.wantRows("select count(*) from idem.idempotency_keys", 1)
}

// lastReplies lets the first go on, once nothing else can happen.
func lastReplies(g *gate, first, duplicate <-chan reply) (one, two reply) {
	if !advisoryLocks {
		two = <-duplicate
	}
	g.release()
	one = <-first
	if advisoryLocks {
		two = <-duplicate
	}
	return one, two
}

// TestLazyClaim_inFlightElsewhere has the first run in another process: the
// handler meets idem.ErrAnswered, and its request waits and gets the replay.
func TestLazyClaim_inFlightElsewhere(t *testing.T) {
	for name, answer := range repeats {
		t.Run(name, func(t *testing.T) {
			url := pgtest.NewURL(t)
			var g *gate
			a := newLazily(rigOn(t, pgtest.Pool(t, url)), func(ctx context.Context, tx pgx.Tx) error {
				err := execute(insertOne)(ctx, tx)
				g.pass()
				return err
			})
			b := newLazily(rigOn(t, pgtest.Pool(t, url)), execute(insertOne))
			b.answer = answer
			g = newGate(t)
			first := a.begin(post("/x", "k", "{}"))
			g.inside(t)
			duplicate := b.begin(post("/x", "k", "{}"))
			if advisoryLocks { // else it does not wait, and wins
				eventually(t, "the duplicate is there", func() bool { return b.guard.Flying("guest", "k") })
				b.want(b.send(post("/x", "k", "another")), 409, "key-mismatch")
			}
			one, two := lastReplies(g, first, duplicate)
			if one.status != 201 || two.status != 201 || two.body != one.body || one.replayed() == two.replayed() {
				t.Errorf("the first got %d %q, the duplicate %d %q, replayed %v, %v", one.status, one.body, two.status, two.body, one.replayed(), two.replayed())
			}
			a.wantRows("select count(*) from orders", 1)
		})
	}
}
