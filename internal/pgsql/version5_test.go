package pgsql_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql"
	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// version5 are the statements of the version before migration 6 that it has changed:
// programs that still run them go on.
func version5(t *testing.T, name string) string {
	t.Helper()
	text, found := files(t)[path.Join("testdata", "version5", name+".sql")]
	if !found {
		t.Fatalf("there is no %s of version 5", name)
	}
	return pgsql.Statement(text)
}

// answerArgs are the arguments of key_answer for key k, without what names the request.
func answerArgs(k string) []any {
	return []any{"s", k, uuid.New(), int16(1), make([]byte, 32), 201, [][]byte{}, []byte("made"), nil, 3600.0, nil, true}
}

// leaseArgs are the same of key_lease, for a lease that is over at once.
func leaseArgs(k string, fence uuid.UUID) []any {
	return []any{"s", k, fence, int16(1), make([]byte, 32), 0.0, 3600.0}
}

// enqueueArgs are the same of task_enqueue.
func enqueueArgs(key string) []any {
	return []any{"q", "k", []*string{&key}, [][]byte{[]byte("1")}, [][]byte{nil}, []*float64{nil}, []*time.Time{nil},
		[]int16{0}, []int32{10}, 3600, nil, nil, nil, nil}
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// named are the arguments of a statement that names the request, too.
func named(args []any) []any { return append(args, parent, "req-1") }

// atVersion5 is a database as the version before has left it, with rows of its doors.
func atVersion5(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Empty(t))
	for _, step := range idem.Migrations()[:5] {
		if _, err := pool.Exec(t.Context(), step.SQL); err != nil {
			t.Fatal(err)
		}
	}
	run(t, pool, version5(t, "key_answer"), answerArgs("answered")...)
	run(t, pool, version5(t, "key_lease"), leaseArgs("claimed", uuid.New())...)
	run(t, pool, version5(t, "task_enqueue"), enqueueArgs("old")...)
	return pool
}

// Rows from before stay as they are, and tell of no request.
func TestMigration6_keepsTheRowsOfVersion5(t *testing.T) {
	pool := atVersion5(t)
	steps, err := idem.Migrate(t.Context(), pool)
	if err != nil || len(steps) != 1 || steps[0].Version != 6 {
		t.Fatalf("applied %v (%v), want step 6", steps, err)
	}
	var state, by string
	for _, k := range []string{"answered", "claimed"} {
		err := pool.QueryRow(t.Context(), keys.Read, "s", k).Scan(nil, &state, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, &by)
		if err != nil || state != k || by != "" {
			t.Errorf("%s is read as %q, %q (%v)", k, state, by, err)
		}
	}
	if n := take(t, pool, uuid.New(), 10, 60); n != 1 {
		t.Errorf("%d tasks are taken, want the one from before", n)
	}
	db, err := idem.Open(t.Context(), pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for v, err := range idem.Check(t.Context(), db) {
		t.Errorf("broken after the migration: %v %v", v, err)
	}
}

// A program of version 5 that still runs reads and takes what this one has written, and this
// one what that has.
func TestMigration6_programsOfVersion5GoOn(t *testing.T) {
	pool := atVersion5(t)
	if _, err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	run(t, pool, keys.Answer, named(answerArgs("new"))...)
	run(t, pool, version5(t, "key_answer"), answerArgs("old")...)
	run(t, pool, version5(t, "key_withhold"), "s", "withheld", uuid.New(), int16(1), make([]byte, 32), 201, 3600.0, nil, true)
	run(t, pool, version5(t, "key_bind"), "s", "bound", uuid.New(), int16(1), make([]byte, 32))
	for _, statement := range []string{version5(t, "key_read"), keys.Read} {
		for _, k := range []string{"new", "old", "withheld", "bound"} {
			if n := run(t, pool, statement, "s", k); n != 1 {
				t.Errorf("%s: read %d rows, want 1", k, n)
			}
		}
	}
	fence := uuid.New()
	run(t, pool, keys.Lease, named(leaseArgs("leased", fence))...)
	retaken := run(t, pool, version5(t, "key_retake"), "s", "leased", uuid.New(), int16(1), make([]byte, 32), 60.0, 3600.0, fence, true)
	if retaken != 1 {
		t.Errorf("a program of version 5 takes over %d claims of this one, want 1", retaken)
	}
	run(t, pool, tasks.Enqueue, append(enqueueArgs("new"), parent)...)
	var n int
	for _, statement := range []string{version5(t, "task_take"), tasks.Take} {
		n += int(run(t, pool, statement, "q", uuid.New(), uuid.New(), []string{"k"}, []float64{60}, 1, 0,
			[]int16{0}, []time.Time{time.Unix(0, 0)}, []int64{0}))
	}
	var left int
	err := pool.QueryRow(context.Background(), "select count(*) from idem.tasks where status = 'pending'").Scan(&left)
	if err != nil || n != 2 || left != 0 {
		t.Errorf("%d tasks are taken and %d left (%v), want both taken", n, left, err)
	}
}
