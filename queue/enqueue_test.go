package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parcel is the payload of the tests of enqueueing.
type parcel struct {
	Order int    `json:"order"`
	Note  string `json:"note,omitempty"`
}

var parcelSend = queue.Define[parcel]("parcel.send", queue.Options{Queue: "parcels"})

// enqueued enqueues a task that must be possible, and must have come to outcome.
func enqueued(t *testing.T, kind *queue.Kind[parcel], db queue.Conn, key string, p parcel, outcome queue.Outcome) queue.Enqueued {
	t.Helper()
	e, err := kind.Enqueue(t.Context(), db, key, p)
	if (err != nil) != (outcome == queue.Mismatch) || e.Outcome != outcome {
		t.Fatalf("enqueue %s %v: got %+v, %v; want %s", key, p, e, err, outcome)
	}
	return e
}

// ask scans the one row of a query.
func ask[V any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (v V) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// change runs a statement that must change one row.
func change(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if tag, err := pool.Exec(t.Context(), sql, args...); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s: %v, %v", sql, tag, err)
	}
}

// became gives a task the columns of a state, as if a worker had brought it there.
func became(t *testing.T, pool *pgxpool.Pool, id int64, status queue.Status) {
	t.Helper()
	switch status {
	case queue.StatusPending:
	case queue.StatusRunning:
		change(t, pool, `with fence as (insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
			select gen_random_uuid(), gen_random_uuid(), queue, clock_timestamp(), clock_timestamp() + interval '1 hour', 1, array[id]
			from idem.tasks where id = $1 returning fence, lease_until)
			update idem.tasks set status = 'running', fence = f.fence, lease_until = f.lease_until, takes = 1 from fence as f where id = $1`, id)
	default:
		change(t, pool, `update idem.tasks set status = $2, lease_until = null, last_error = case when $2 <> 'done' then 'no' end, attempts = 1, takes = 1,
			finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 hour' where id = $1`, id, string(status))
	}
}

func TestT1_aRepeatLearnsWhichTaskItIsAndInWhichState(t *testing.T) {
	pool := pgtest.New(t)
	for _, status := range []queue.Status{queue.StatusPending, queue.StatusRunning, queue.StatusDone, queue.StatusFailed, queue.StatusCancelled} {
		key := "parcel:" + string(status)
		first := enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.New)
		became(t, pool, first.ID, status)
		again := enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.Duplicate)
		if again.ID != first.ID || again.Status != status {
			t.Errorf("%s: got %+v, want task %d", status, again, first.ID)
		}
	}
	other := queue.Define[parcel]("parcel.send", queue.Options{Queue: "elsewhere"})
	enqueued(t, other, pool, "parcel:done", parcel{Order: 1}, queue.New) // a key is a queue's own
}

func TestT2_anotherPayloadOrKindIsAMismatchAndChangesNothing(t *testing.T) {
	pool := pgtest.New(t)
	first := enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.New)
	before := ask[string](t, pool, "select c::text from idem.tasks as c")
	check := func(e queue.Enqueued, err error) {
		t.Helper()
		var mismatch *queue.MismatchError
		if !errors.As(err, &mismatch) || !errors.Is(err, queue.ErrMismatch) || e.Outcome != queue.Mismatch || e.Err == nil {
			t.Fatalf("got %+v, %v, want a mismatch", e, err)
		}
		want := queue.MismatchError{Key: "parcel:1", ID: first.ID, Kind: "parcel.send", Status: queue.StatusPending}
		if *mismatch != want || e.ID != first.ID || !strings.Contains(err.Error(), fmt.Sprintf("task %d", first.ID)) {
			t.Errorf("got %+v (%v), want %+v", *mismatch, err, want)
		}
	}
	e, err := parcelSend.Enqueue(t.Context(), pool, "parcel:1", parcel{Order: 2})
	check(e, err)
	other := queue.Define[parcel]("parcel.return", queue.Options{Queue: "parcels"})
	e, err = other.Enqueue(t.Context(), pool, "parcel:1", parcel{Order: 1})
	check(e, err)
	if after := ask[string](t, pool, "select c::text from idem.tasks as c"); after != before {
		t.Errorf("a mismatch has changed the task:\n %s\n %s", before, after)
	}
}

func TestT2_anOptionalFieldAfterADeployIsNoMismatch(t *testing.T) {
	type older struct {
		Order int `json:"order"`
	}
	type newer struct {
		Order  int    `json:"order"`
		Method string `json:"method"` // not even omitempty
	}
	pool := pgtest.New(t)
	before := queue.Define[older]("parcel.send", queue.Options{Queue: "parcels"})
	for _, c := range []struct {
		name string
		old  *queue.Kind[older]
		now  *queue.Kind[newer]
	}{
		{"declared", queue.Define[older]("a", queue.Options{}).Means(func(p older) any { return p.Order }),
			queue.Define[newer]("a", queue.Options{}).Means(func(p newer) any { return p.Order })},
		{"declared since", queue.Define[older]("b", queue.Options{}),
			queue.Define[newer]("b", queue.Options{}).Means(func(p newer) any { return p.Order })},
		{"read as its zero", queue.Define[older]("c", queue.Options{}), queue.Define[newer]("c", queue.Options{})},
	} {
		old, err := c.old.Enqueue(t.Context(), pool, c.name[:1]+c.name[len(c.name)-1:], older{1})
		if err != nil {
			t.Fatal(err)
		}
		now, err := c.now.Enqueue(t.Context(), pool, c.name[:1]+c.name[len(c.name)-1:], newer{Order: 1})
		if err != nil || now.Outcome != queue.Duplicate || now.ID != old.ID {
			t.Errorf("%s: got %+v, %v, want a duplicate of %d", c.name, now, err, old.ID)
		}
		if _, err := c.now.Enqueue(t.Context(), pool, c.name[:1]+c.name[len(c.name)-1:], newer{Order: 2}); !errors.Is(err, queue.ErrMismatch) {
			t.Errorf("%s: another order: got %v, want a mismatch", c.name, err)
		}
	}
	// What says more than this program can read is not the same.
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1, Note: "by air"}, queue.New)
	if _, err := before.Enqueue(t.Context(), pool, "parcel:1", older{1}); !errors.Is(err, queue.ErrMismatch) {
		t.Errorf("got %v, want a mismatch", err)
	}
}

func TestT2_theSameJSONWrittenInAnotherWayIsTheSame(t *testing.T) {
	pool := pgtest.New(t)
	change(t, pool, `insert into idem.tasks (queue, kind, task_key, payload)
		values ('parcels', 'parcel.send', 'parcel:1', convert_to('{ "note" : "by air", "order" : 1 }', 'UTF8'))`)
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1, Note: "by air"}, queue.Duplicate)
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.Mismatch)
	bytes := queue.Define[[]byte]("parcel.raw", queue.Options{Queue: "parcels"})
	for i, payload := range [][]byte{nil, {}, []byte("\x00\xff{"), []byte("{ }")} {
		if e, err := bytes.Enqueue(t.Context(), pool, fmt.Sprint("raw:", i), payload); err != nil || e.Outcome != queue.New {
			t.Fatalf("bytes %q: %+v, %v", payload, e, err)
		}
		if e, err := bytes.Enqueue(t.Context(), pool, fmt.Sprint("raw:", i), payload); err != nil || e.Outcome != queue.Duplicate {
			t.Errorf("bytes %q again: %+v, %v", payload, e, err)
		}
		if _, err := bytes.Enqueue(t.Context(), pool, fmt.Sprint("raw:", i), []byte("{}")); !errors.Is(err, queue.ErrMismatch) {
			t.Errorf("bytes %q, then {}: %v, want a mismatch", payload, err)
		}
	}
}

func TestT3_rolledBackThereIsNoTask(t *testing.T) {
	pool := pgtest.New(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	enqueued(t, parcelSend, tx, "parcel:1", parcel{Order: 1}, queue.New)
	enqueued(t, parcelSend, tx, "parcel:1", parcel{Order: 1}, queue.Duplicate) // of its own
	savepoint, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	enqueued(t, parcelSend, savepoint, "parcel:2", parcel{Order: 2}, queue.New)
	if err := errors.Join(savepoint.Rollback(t.Context()), tx.Rollback(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, pool, "select count(*) from idem.tasks"); n != 0 {
		t.Errorf("%d tasks, want none", n)
	}
	if _, err := parcelSend.Enqueue(t.Context(), tx, "parcel:1", parcel{Order: 1}); !errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("in a transaction that is over: got %v, want pgx.ErrTxClosed", err)
	}
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.New)
}

// wakeups are the notifications that workers get.
type wakeups struct {
	t    *testing.T
	conn *pgx.Conn
	mark int
}

func listen(t *testing.T, pool *pgxpool.Pool) *wakeups {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Direct(t, pool.Config().ConnString()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "listen idem_tasks"); err != nil {
		t.Fatal(err)
	}
	return &wakeups{t: t, conn: conn}
}

// next is the queue that is told of next.
func (w *wakeups) next() string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	n, err := w.conn.WaitForNotification(ctx)
	if err != nil {
		w.t.Fatalf("no wake-up: %v", err)
	}
	return n.Payload
}

// none fails if a queue was told of. A wake-up that is about to be sent comes before the
// second of two marks, which are sent the same way, one after the other.
func (w *wakeups) none(db *idem.DB) {
	w.t.Helper()
	for range 2 {
		w.mark++
		mark := fmt.Sprint("mark:", w.mark)
		queue.Wake(w.t.Context(), db, mark)
		if got := w.next(); got != mark {
			w.t.Errorf("the queue %s was told of, want none", got)
			return
		}
	}
}

func open(t *testing.T, pool *pgxpool.Pool) *idem.DB {
	t.Helper()
	db, err := idem.Open(t.Context(), pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestT3_aWakeUpFollowsTheCommitAndNothingElse(t *testing.T) {
	pool := pgtest.New(t)
	db, w := open(t, pool), listen(t, pool)
	woken := func(how string) {
		t.Helper()
		if got := w.next(); got != "parcels" {
			t.Errorf("%s: the queue %q was told of, want parcels", how, got)
		}
		w.none(db)
	}
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.New)
	woken("on a pool")
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	enqueued(t, parcelSend, conn, "parcel:2", parcel{Order: 2}, queue.New)
	woken("on a connection of the pool")
	enqueued(t, parcelSend, conn.Conn(), "parcel:3", parcel{Order: 3}, queue.New)
	woken("on a connection")

	enqueued(t, parcelSend, pool, "parcel:3", parcel{Order: 3}, queue.Duplicate)
	w.none(db)
	if _, err := parcelSend.EnqueueMany(t.Context(), pool, queue.Task[parcel]{Key: "later", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w.none(db)
	for _, end := range []string{"rollback", "commit"} { // nobody tells us of either
		for _, sql := range []string{"begin", "", end} {
			if sql == "" {
				enqueued(t, parcelSend, conn.Conn(), "in:"+end, parcel{}, queue.New)
				enqueued(t, parcelSend, conn, "also:"+end, parcel{}, queue.New)
			} else if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		w.none(db)
	}
	queue.Wake(t.Context(), db, "parcels")
	woken("by the program after its commit")
}

var ordersRoute = idemhttp.Route{Name: "POST /orders"}

// guarded serves one request with a handler that enqueues in its transaction.
func guarded(t *testing.T, db *idem.DB, route idemhttp.Route, key string, handler func(ctx context.Context, tx pgx.Tx) (status int)) {
	t.Helper()
	scope := func(*http.Request) (string, error) { return "ana", nil }
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	h := guard.Route(route)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(handler(r.Context(), idem.Tx(r.Context())))
	}))
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", key)
	h.ServeHTTP(httptest.NewRecorder(), r)
}

func TestT3_aGuardedRequestWakesWorkersIfItCommits(t *testing.T) {
	pool := pgtest.New(t)
	db, w := open(t, pool), listen(t, pool)
	for _, c := range []struct {
		key    string
		status int
		woken  bool
	}{{"refused", 422, false}, {"failed", 500, false}, {"remembered", 409, false}, {"made", 201, true}} {
		guarded(t, db, ordersRoute, c.key, func(ctx context.Context, tx pgx.Tx) int {
			if _, err := parcelSend.Enqueue(ctx, tx, c.key, parcel{Order: 1}); err != nil {
				t.Error(err)
			}
			return c.status
		})
		if c.woken {
			if got := w.next(); got != "parcels" {
				t.Errorf("%s: the queue %q was told of, want parcels", c.key, got)
			}
		}
		w.none(db)
		if n := ask[int](t, pool, "select count(*) from idem.tasks where task_key = $1", c.key); (n == 1) != c.woken {
			t.Errorf("%s: %d tasks", c.key, n)
		}
	}
}

// TestT1_whereTheClaimTravelsWithTheFirstStatement is for a repeat on a route with
// LazyClaim: it is answered already, which is no trouble of the database's.
func TestT1_whereTheClaimTravelsWithTheFirstStatement(t *testing.T) {
	pool := pgtest.New(t)
	db, lazy := open(t, pool), ordersRoute
	lazy.LazyClaim = true
	var errs []error
	for range 2 {
		guarded(t, db, lazy, "key-1", func(ctx context.Context, tx pgx.Tx) int {
			_, err := parcelSend.Enqueue(ctx, tx, "parcel:1", parcel{Order: 1})
			errs = append(errs, err)
			return http.StatusCreated
		})
	}
	if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], idem.ErrAnswered) || errors.Is(errs[1], idem.ErrUnavailable) {
		t.Errorf("got %v, want nothing, and then idem.ErrAnswered", errs)
	}
	if n := ask[int](t, pool, "select count(*) from idem.tasks"); n != 1 {
		t.Errorf("%d tasks, want 1", n)
	}
}

func TestT4_aKeyIsRememberedAsLongAsItsTask(t *testing.T) {
	pool := pgtest.New(t)
	for _, status := range []queue.Status{queue.StatusDone, queue.StatusFailed, queue.StatusCancelled} {
		for _, swept := range []bool{false, true} {
			key := fmt.Sprintf("parcel:%s:%v", status, swept)
			first := enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.New)
			became(t, pool, first.ID, status)
			enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.Duplicate)
			enqueued(t, parcelSend, pool, key, parcel{Order: 2}, queue.Mismatch)
			change(t, pool, "update idem.tasks set expires_at = clock_timestamp() where id = $1", first.ID)
			if swept {
				if _, err := idem.Sweep(t.Context(), open(t, pool)); err != nil {
					t.Fatal(err)
				}
			}
			again := enqueued(t, parcelSend, pool, key, parcel{Order: 2}, queue.New)
			if again.ID == first.ID || again.Status != queue.StatusPending {
				t.Errorf("%s: got %+v, want another task than %d", key, again, first.ID)
			}
		}
	}
}

func TestT4_aTaskWhoseEffectIsUnsettledIsRemembered(t *testing.T) {
	pool := pgtest.New(t)
	first := enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.New)
	became(t, pool, first.ID, queue.StatusFailed)
	change(t, pool, "update idem.tasks set expires_at = clock_timestamp() - interval '1 day'")
	change(t, pool, `insert into idem.applied_effects (scope, effect_key, status, downstream_key, intended_at, call_until, calls, cause_door, cause_scope, cause_key,
			owner_door, owner_scope, owner_key)
		values ('shop', 'e', 'unknown', gen_random_uuid()::text, clock_timestamp(), clock_timestamp(), 1, 'task', 'parcels', $1, 'task', 'parcels', $1)`, fmt.Sprint(first.ID))
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.Duplicate)
	change(t, pool, "update idem.applied_effects set status = 'absent'")
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.New)
}

func TestT5_tenThousandAtOnceAreToldEachAtItsIndex(t *testing.T) {
	pool := pgtest.New(t)
	const n = 10_000
	many := make([]queue.Task[parcel], n)
	want := make([]queue.Outcome, n)
	firsts := make([]int, n) // the index of the first with its key
	for i := range many {
		many[i], want[i], firsts[i] = queue.Task[parcel]{Key: fmt.Sprint("parcel:", i), Payload: parcel{Order: i}}, queue.New, i
		switch {
		case i%100 == 7: // remembered from before
			enqueued(t, parcelSend, pool, many[i].Key, many[i].Payload, queue.New)
			want[i] = queue.Duplicate
		case i%100 == 8: // the same as the one before
			many[i], want[i], firsts[i] = many[i-1], queue.Duplicate, i-1
		case i%100 == 9: // remembered from before, as another
			enqueued(t, parcelSend, pool, many[i].Key, parcel{Order: -1}, queue.New)
			want[i] = queue.Mismatch
		case i%100 == 18:
			many[i], want[i], firsts[i] = many[i-10+8], queue.Duplicate, i-2
		case i%100 == 19:
			many[i].Key, want[i], firsts[i] = many[i-2].Key, queue.Mismatch, i-2
		case i%100 == 50:
			many[i].Key = queue.Unkeyed
		case i%100 == 51:
			many[i] = many[i-1]
		}
	}
	begun := time.Now()
	told, err := parcelSend.EnqueueMany(t.Context(), pool, many...)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Logf("it took %v", took)
	}
	if !errors.Is(err, queue.ErrMismatch) || len(told) != n {
		t.Fatalf("got %d of %d, and %v", len(told), n, err)
	}
	mismatches := 0
	for i, e := range told {
		if e.Outcome != want[i] || e.ID == 0 || e.Status != queue.StatusPending || (e.Err != nil) != (want[i] == queue.Mismatch) {
			t.Fatalf("%d: got %+v, want %s", i, e, want[i])
		}
		if e.ID != told[firsts[i]].ID {
			t.Fatalf("%d: got %+v, want the task of %d, %+v", i, e, firsts[i], told[firsts[i]])
		}
		if e.Err != nil {
			mismatches++
		}
	}
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil || len(joined.Unwrap()) != mismatches || mismatches != 200 {
		t.Errorf("%d mismatches, joined as %T", mismatches, err)
	}
	rows, keyed := ask[int](t, pool, "select count(*) from idem.tasks"), ask[int](t, pool, "select count(distinct task_key) from idem.tasks")
	if rows != n-300 || keyed != n-500 {
		t.Errorf("%d tasks with %d keys, want %d with %d", rows, keyed, n-300, n-500)
	}
	// In the order of the call they are taken: what is due at the same time goes by id.
	if inOrder := ask[bool](t, pool, `select bool_and(n > before) from (select convert_from(payload, 'UTF8')::json ->> 'order' as n, lag(convert_from(payload, 'UTF8')::json ->> 'order')
		over (order by id) as before, task_key from idem.tasks where id >= $1 and task_key like 'parcel:12__' order by id) as x
		where before is not null`, told[0].ID); !inOrder {
		t.Error("the ids are not in the order of the call")
	}
}

func TestEnqueue_delaysDueTimesPrioritiesAndLimits(t *testing.T) {
	pool := pgtest.New(t)
	kind := queue.Define[parcel]("parcel.send", queue.Options{Queue: "parcels", Priority: 2, MaxAttempts: 7, Retention: 90 * time.Minute})
	priority, once := -5, 1
	zone := time.FixedZone("far", 13*3600)
	due := time.Date(2031, 2, 3, 4, 5, 6, 7000, zone)
	_, err := kind.EnqueueMany(t.Context(), pool,
		queue.Task[parcel]{Key: "plain"},
		queue.Task[parcel]{Key: "late", Delay: 90 * time.Second},
		queue.Task[parcel]{Key: "at", RunAt: due, Priority: &priority, MaxAttempts: &once},
		queue.Task[parcel]{Key: "past", RunAt: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)},
		queue.Task[parcel]{Key: "forever", Delay: queue.MaxDelay})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"plain":   "00:00:00 2 7 5400 pending 0",
		"late":    "00:01:30 2 7 5400 pending 0",
		"past":    "passed 2 7 5400 pending 0",
		"forever": "3650 days 2 7 5400 pending 0",
		"at":      "2031-02-02 15:05:06.000007 -5 1 5400 pending 0",
	} {
		got := ask[string](t, pool, `select case task_key when 'at' then (run_at at time zone 'UTC')::text
				when 'past' then case when run_at < created_at then 'passed' end else (run_at - created_at)::text end || ' ' ||
			concat_ws(' ', priority, max_attempts, retention, status, attempts) from idem.tasks where task_key = $1`, key)
		if got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
	// They are the first one's: a repeat is the same task, and changes nothing.
	e, err := kind.EnqueueMany(t.Context(), pool, queue.Task[parcel]{Key: "late", Delay: time.Hour, Priority: &priority, MaxAttempts: &once})
	if err != nil || e[0].Outcome != queue.Duplicate || ask[int](t, pool, "select priority from idem.tasks where task_key = 'late'") != 2 {
		t.Errorf("got %+v, %v, want a duplicate that is as before", e, err)
	}
	forgetful := queue.Define[parcel]("parcel.send", queue.Options{Queue: "forgetful", Retention: queue.Forget})
	f := enqueued(t, forgetful, pool, "k", parcel{}, queue.New)
	if keeps := ask[int](t, pool, "select retention from idem.tasks where id = $1", f.ID); keeps != 0 {
		t.Errorf("Forget keeps it for %d seconds", keeps)
	}
}

// cause is what the task with a key was enqueued by.
func cause(t *testing.T, pool *pgxpool.Pool, key string) string {
	t.Helper()
	return ask[string](t, pool, "select concat_ws(' ', coalesce(cause_door, 'nobody'), cause_scope, cause_key) from idem.tasks where task_key = $1", key)
}

func TestEnqueue_remembersItsCause(t *testing.T) {
	pool := pgtest.New(t)
	db := open(t, pool)
	enqueued(t, parcelSend, pool, "by:nobody", parcel{}, queue.New)
	guarded(t, db, ordersRoute, "key-1", func(ctx context.Context, tx pgx.Tx) int {
		if _, err := parcelSend.Enqueue(ctx, tx, "by:request", parcel{}); err != nil {
			t.Error(err)
		}
		return http.StatusCreated
	})
	w := queue.NewWorker(db, queue.Config{PollOnly: true, Poll: 20 * time.Millisecond})
	parcelSend.Handle(w, func(ctx context.Context, tx pgx.Tx, p parcel) error {
		if p.Note != "" {
			return nil
		}
		_, err := parcelSend.EnqueueMany(ctx, tx, queue.Task[parcel]{Key: "by:task", Payload: parcel{Note: "follows"}, Delay: time.Hour})
		return err
	})
	working(t, w)
	eventually(t, pool, "select exists (select from idem.tasks where task_key = 'by:task')")
	ids := ask[[]int64](t, pool, "select array_agg(id) from idem.tasks where task_key in ('by:nobody', 'by:request')")
	if got := cause(t, pool, "by:nobody"); got != "nobody" {
		t.Errorf("outside: %s, want nobody", got)
	}
	if got := cause(t, pool, "by:request"); got != "request ana key-1" {
		t.Errorf("in a request: %s, want request ana key-1", got)
	}
	if got := cause(t, pool, "by:task"); got != fmt.Sprint("task parcels ", ids[0]) && got != fmt.Sprint("task parcels ", ids[1]) {
		t.Errorf("in a task: %s, want one of %v", got, ids)
	}
}

// working runs a worker to the end of the test.
func working(t *testing.T, w *queue.Worker) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the worker: %v", err)
		}
	})
}

// eventually waits until a query says true.
func eventually(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if ask[bool](t, pool, sql, args...) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never true: %s", sql)
		}
	}
}

// TestEnqueue_worksInEveryModeOfTheDriver is for poolers and servers that know no
// prepared statements.
func TestEnqueue_worksInEveryModeOfTheDriver(t *testing.T) {
	url := pgtest.Direct(t, pgtest.NewURL(t)) // PgBouncer knows no descriptions that outlive a transaction
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DefaultQueryExecMode = mode
		pool := pgtest.PoolWith(t, config)
		key, priority := strings.ReplaceAll("mode:"+mode.String(), " ", "-"), 3
		many := []queue.Task[parcel]{{Key: key, Payload: parcel{Order: 1, Note: "a'\"\\ü\u2028"}, Delay: time.Hour},
			{Key: queue.Unkeyed, Priority: &priority, RunAt: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}, {Key: key, Payload: parcel{Order: 2}}}
		e, err := parcelSend.EnqueueMany(t.Context(), pool, many...)
		if !errors.Is(err, queue.ErrMismatch) || len(e) != 3 || e[0].Outcome != queue.New || e[1].Outcome != queue.New || e[2].Outcome != queue.Mismatch {
			t.Fatalf("%v: got %+v, %v", mode, e, err)
		}
		if e, err := parcelSend.EnqueueMany(t.Context(), pool, many[0]); err != nil || e[0].Outcome != queue.Duplicate {
			t.Errorf("%v: again: got %+v, %v", mode, e, err)
		}
	}
}
