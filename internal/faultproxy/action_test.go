package faultproxy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
)

// silent is how long a client waits for a server that does not answer.
const silent = 300 * time.Millisecond

// broken marks with the fault done at a point, and returns what the client was
// told: the fault must have been done, and the client must not wait for ever.
func broken(t *testing.T, r *rig, when func(faultproxy.Message) bool, do faultproxy.Action, patience time.Duration) error {
	t.Helper()
	conn := r.connect(t)
	armed := r.Add(faultproxy.Rule{Name: do.String(), When: when, Do: do})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := wait(t, marking(ctx, conn, 1))
	wantReached(t, armed)
	if got := armed.Visits(); got != 1 {
		t.Errorf("the fault was done %d times, want once", got)
	}
	return err
}

var (
	commits   = faultproxy.Executes("commit")
	committed = faultproxy.Completes("COMMIT")
)

// What is true after each fault at COMMIT.
func TestAction_atCommit(t *testing.T) {
	const told, unheard = patience, silent
	r := newRig(t)
	for _, test := range []struct {
		name     string
		when     func(faultproxy.Message) bool
		do       faultproxy.Action
		patience time.Duration // told: the client learns at once that the connection is gone
		marks    int
		sessions int // that the server has in the end
	}{
		{"cut before it", commits, faultproxy.Cut(), told, 0, 0},
		{"reset before it", commits, faultproxy.Reset(), told, 0, 0},
		{"cut after it", commits, faultproxy.After(faultproxy.Cut()), told, 1, 0},
		{"cut when it is done", committed, faultproxy.Cut(), told, 1, 0},
		{"reset when it is done", committed, faultproxy.Reset(), told, 1, 0},
		{"client cut before it", commits, faultproxy.CutClient(), told, 0, 1},
		{"client cut when it is done", committed, faultproxy.CutClient(), told, 1, 1},
		{"server cut before it", commits, faultproxy.CutServer(), unheard, 0, 0},
		{"server cut after it", commits, faultproxy.After(faultproxy.CutServer()), unheard, 1, 0},
		{"all dropped from it on", commits, faultproxy.Drop(), unheard, 0, 1},
		{"client's packets dropped", commits, faultproxy.Drop(faultproxy.FromClient), unheard, 0, 1},
		{"server's packets dropped", commits, faultproxy.Drop(faultproxy.FromServer), unheard, 1, 0},
		{"delivered and the reply dropped", commits, faultproxy.After(faultproxy.Drop(faultproxy.FromServer)), unheard, 1, 0},
		{"all dropped when it is done", committed, faultproxy.Drop(), unheard, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.must(t, "truncate public.marks")
			err := broken(t, r, test.when, test.do, test.patience)
			if err == nil {
				t.Fatal("the client was told of success")
			}
			if heard := !errors.Is(err, context.DeadlineExceeded); heard != (test.patience == told) {
				t.Errorf("the client was told %v; want it to hear nothing: %t", err, test.patience == unheard)
			}
			r.wantSessions(t, test.sessions)
			r.wantMarks(t, test.marks)
			r.CutAll()
			r.wantSessions(t, 0)
			r.wantMarks(t, test.marks)
		})
	}
}

func TestAction_passIsSeenAndHarmless(t *testing.T) {
	r := newRig(t)
	if err := broken(t, r, commits, faultproxy.Action{}, patience); err != nil {
		t.Error(err)
	}
	r.wantMarks(t, 1)
}

func TestAction_delayPassesLater(t *testing.T) {
	r := newRig(t)
	for _, when := range []func(faultproxy.Message) bool{commits, committed} {
		r.must(t, "truncate public.marks")
		begun := time.Now()
		if err := broken(t, r, when, faultproxy.Delay(200*time.Millisecond), patience); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < 200*time.Millisecond {
			t.Errorf("took %v, want 200ms at least", took)
		}
		r.wantMarks(t, 1)
	}
}

func TestAction_holdWaitsForRelease(t *testing.T) {
	r := newRig(t)
	for _, test := range []struct {
		name  string
		when  func(faultproxy.Message) bool
		do    faultproxy.Action
		marks int // while it is held
	}{
		{"COMMIT is held", commits, faultproxy.Hold(), 0},
		{"its reply is held", committed, faultproxy.Hold(), 1},
		{"what follows COMMIT is held", commits, faultproxy.After(faultproxy.Hold()), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.must(t, "truncate public.marks")
			conn := r.connect(t)
			armed := r.Add(faultproxy.Rule{Name: test.name, When: test.when, Do: test.do})
			done := marking(t.Context(), conn, 1)
			wantReached(t, armed)
			eventually(t, func() bool { return r.marks(t) == test.marks }, func() { r.wantMarks(t, test.marks) })
			select {
			case err := <-done:
				t.Fatalf("the client was answered while it was held: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			armed.Release()
			armed.Release()
			if err := wait(t, done); err != nil {
				t.Error(err)
			}
			r.wantMarks(t, 1)
		})
	}
}

func TestAction_whatIsHeldCanBeCut(t *testing.T) {
	r := newRig(t)
	for _, test := range []struct {
		name  string
		when  func(faultproxy.Message) bool
		marks int
	}{{"COMMIT is held", commits, 0}, {"its reply is held", committed, 1}} {
		t.Run(test.name, func(t *testing.T) {
			r.must(t, "truncate public.marks")
			conn := r.connect(t)
			armed := r.Add(faultproxy.Rule{Name: test.name, When: test.when, Do: faultproxy.Hold()})
			done := marking(t.Context(), conn, 1)
			wantReached(t, armed)
			armed.Cut()
			if err := wait(t, done); err == nil {
				t.Error("the client was told of success")
			}
			r.wantSessions(t, 0)
			r.wantMarks(t, test.marks)
			r.wantOpen(t, 0)
		})
	}
}

// The COMMIT of a client that has given up arrives when the client has long
// looked for it.
func TestAction_lateArrivesAfterItsClientIsGone(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	armed := r.Add(faultproxy.Rule{Name: "late COMMIT", When: commits, Do: faultproxy.Late()})
	if err := wait(t, marking(t.Context(), conn, 1)); err == nil {
		t.Fatal("the client was told of success")
	}
	wantReached(t, armed)
	<-conn.PgConn().CleanupDone()
	r.wantMarks(t, 0)
	r.wantSessions(t, 1)
	armed.Release()
	r.wantSessions(t, 0)
	r.wantMarks(t, 1)
	r.wantOpen(t, 0)
}

// A server that ends a session tells its client, and what is held is let go.
func TestAction_holdEndsWithTheServersSession(t *testing.T) {
	r := newRig(t)
	for _, do := range []faultproxy.Action{faultproxy.Hold(), faultproxy.Late()} {
		t.Run(do.String(), func(t *testing.T) {
			conn := r.connect(t)
			armed := r.Add(faultproxy.Rule{Name: "COMMIT", When: commits, Do: do})
			done := marking(t.Context(), conn, 1)
			wantReached(t, armed)
			r.must(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", name(t))
			if err := wait(t, done); err == nil {
				t.Error("the client was told of success")
			}
			r.wantSessions(t, 0)
			r.wantMarks(t, 0)
			r.wantOpen(t, 0)
		})
	}
}

// A server whose client's packets are dropped does not learn that the client is
// gone, though it has much to send: it sends it all and waits for more.
func TestAction_droppedClientCannotTellThatItIsGone(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	armed := r.Add(faultproxy.Rule{Name: "rows", When: faultproxy.Is(faultproxy.FromServer, "DataRow"),
		Do: faultproxy.Drop(faultproxy.FromClient)})
	rows, err := conn.Query(t.Context(), "select repeat('x', 1000) from generate_series(1, 30000)")
	if err != nil || !rows.Next() {
		t.Fatal("no row: ", err)
	}
	wantReached(t, armed)
	if err := conn.PgConn().Conn().Close(); err != nil {
		t.Fatal(err)
	}
	rows.Close()
	var state string
	idle := func() bool {
		err := r.direct.QueryRow(t.Context(), "select state from pg_stat_activity where application_name = $1", name(t)).Scan(&state)
		if err != nil {
			t.Fatal("the server's session is gone: ", err)
		}
		return state == "idle"
	}
	eventually(t, idle, func() { t.Errorf("the server's session is %s, want idle", state) })
	r.CutAll()
	r.wantSessions(t, 0)
}

func TestRule_timesAndDisarm(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	twice := r.Add(faultproxy.Rule{Name: "twice", When: commits, Times: 2})
	always := r.Add(faultproxy.Rule{Name: "always", When: commits, Times: -1})
	third := r.Add(faultproxy.Rule{Name: "third of all", When: faultproxy.Nth(3, commits)})
	sixth := r.Add(faultproxy.Rule{Name: "sixth", When: faultproxy.Nth(6, commits)})
	for n := range 5 {
		if err := mark(t.Context(), conn, n); err != nil {
			t.Fatal(err)
		}
	}
	always.Disarm()
	if err := mark(t.Context(), conn, 5); err != nil {
		t.Fatal(err)
	}
	// One rule acts at a commit, and every rule counts it.
	want := [4]int{2, 3, 0, 1}
	if got := [4]int{twice.Visits(), always.Visits(), third.Visits(), sixth.Visits()}; got != want {
		t.Errorf("visits %v, want %v", got, want)
	}
	select {
	case <-third.Reached():
		t.Error("a rule that did not act says that it was reached")
	default:
	}
}
