//go:build !idem_nolocks

package idemhttp_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

func TestC7_duplicatesInAnotherProcessWaitAndReplay(t *testing.T) {
	a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	duplicates := b.beginMany(20, post("/slow", "k", "201"))
	b.waiters("k", 19) // one of them asks the database for all
	for range 20 {
		if n := b.pool.Stat().AcquiredConns(); n > 1 {
			t.Errorf("%d connections are held by the process that waits, want at most one", n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	a.release()
	one := <-first
	a.want(one, 201, "")
	for _, d := range duplicates {
		if got := <-d; got.status != 201 || got.body != one.body || !got.replayed() {
			t.Errorf("a duplicate got %d %q, replayed %v", got.status, got.body, got.replayed())
		}
	}
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
	a.wantRows("select count(*) from orders", 1)
}

func TestC7_inFlightInAnotherProcessAfterTheWait(t *testing.T) {
	a, b := twoProcesses(t, idemhttp.Route{Wait: 50 * time.Millisecond})
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	for _, d := range b.beginMany(3, post("/slow", "k", "201")) {
		got := <-d
		b.want(got, 425, "in-flight")
	}
	a.release()
	a.want(<-first, 201, "")
	b.want(b.send(post("/slow", "k", "202")), 409, "key-mismatch")
	if got := b.send(post("/slow", "k", "201")); got.status != 201 || !got.replayed() {
		t.Errorf("a later retry got %d, replayed %v", got.status, got.replayed())
	}
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
}

func TestC9_oneOfAnotherProcessTakesOverWhenTheFirstFreesTheKey(t *testing.T) {
	for _, status := range []string{"422", "503"} {
		t.Run(status, func(t *testing.T) {
			a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
			first := a.begin(post("/slow", "k", status))
			a.inside(t)
			duplicates := b.beginMany(10, post("/slow", "k", status))
			b.waiters("k", 9)
			a.release()
			if got := <-first; strconv.Itoa(got.status) != status {
				t.Fatalf("the first got %d", got.status)
			}
			b.inside(t)
			b.release()
			for _, d := range duplicates {
				if got := <-d; strconv.Itoa(got.status) != status || got.body != "run 1" || got.replayed() {
					t.Errorf("a duplicate got %d %q, replayed %v", got.status, got.body, got.replayed())
				}
			}
			if n := b.runs.Load(); n != 1 {
				t.Errorf("the other process ran the handler %d times, want once for all", n)
			}
			a.wantFree()
		})
	}
}

func TestC5_anotherProcessTakesOverFromADeadOne(t *testing.T) {
	a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	duplicates := b.beginMany(10, post("/slow", "k", "201"))
	b.waiters("k", 9)
	var killed bool
	err := b.pool.QueryRow(t.Context(), `select pg_terminate_backend(pid, 10000) from pg_stat_activity
		where datname = current_database() and state = 'idle in transaction'`).Scan(&killed)
	if err != nil || !killed {
		t.Fatalf("the first one's connection was not cut: %v, %v", killed, err)
	}
	b.inside(t)
	b.release()
	for _, d := range duplicates {
		if got := <-d; got.status != 201 || got.body != "run 1" {
			t.Errorf("a duplicate got %d %q", got.status, got.body)
		}
	}
	a.release() // the first one's handler goes on, and must learn that it lost
	got := <-first
	if got.status == 201 && got.replayed() {
		got.status = 200 // the other's answer is as good as 503
	}
	if got.status != 503 && got.status != 200 {
		t.Errorf("the one that lost its connection got %d %q", got.status, got.body)
	}
	a.wantRows("select count(*) from orders", 1)
	if got := a.send(post("/slow", "k", "201")); got.status != 201 || !got.replayed() {
		t.Errorf("its retry got %d, replayed %v", got.status, got.replayed())
	}
}

func TestC6_mismatchInAnotherProcessIsToldAtOnce(t *testing.T) {
	a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	for range 10 {
		b.want(b.send(post("/slow", "k", "202")), 409, "key-mismatch") // a wait would be a minute
	}
	duplicate := b.begin(post("/slow", "k", "201"))
	eventually(t, "the duplicate waits", func() bool { return b.guard.Flying("guest", "k") })
	b.want(b.send(post("/slow", "k", "202")), 409, "key-mismatch") // beside one that waits, too
	select {
	case got := <-first:
		t.Fatalf("the first was answered %d before it was let go", got.status)
	case got := <-duplicate:
		t.Fatalf("the duplicate was answered %d before the first was let go", got.status)
	default:
	}
	a.release()
	one := <-first
	a.want(one, 201, "")
	if got := <-duplicate; got.status != 201 || got.body != one.body || !got.replayed() {
		t.Errorf("the duplicate got %d %q, replayed %v", got.status, got.body, got.replayed())
	}
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
}
