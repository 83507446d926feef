package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The servers are this test's program once more.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveArgument {
		fail(serve(os.Args[2:], os.Stdin, os.Stdout))
		return
	}
	os.Exit(m.Run())
}

// It says nothing of speed: a short run on a machine that does other things.
func TestRun_countsAreRightAndNothingIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every subject")
	}
	s := settings{reps: 1, length: 300 * time.Millisecond, clients: 8, pool: 8, slow: 200 * time.Millisecond, phases: phases}
	r, err := run(t.Context(), s, subjects, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := len(subjects)
	if _, err := exec.LookPath("redis-server"); err != nil {
		want--
		if len(r.NotRun) != 1 || !strings.Contains(r.NotRun[0], "no redis-server") {
			t.Errorf("not run: %q, want fiber with Redis and why", r.NotRun)
		}
	}
	if got := len(r.names(fresh)); got != want {
		t.Errorf("subjects %q, want %d", r.names(fresh), want)
	}
	measured := 0
	for _, s := range subjects {
		for _, phase := range phases {
			if r.has(s.name) && s.takesPart(phase) {
				measured++
			}
		}
	}
	if got := len(r.Figures); got != measured || measured < want*len(oneByOne) {
		t.Errorf("%d measurements, want %d", got, measured)
	}
	for _, f := range r.Figures {
		checkFigures(t, f)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a process is left: %v", err)
	}
}

// checkFigures checks what holds on any machine. That a guarded subject makes one
// order for a key has been checked by the run itself; here from the numbers alone.
func checkFigures(t *testing.T, f figures) {
	t.Helper()
	i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == f.Subject })
	if i < 0 || f.Requests == 0 || f.Keys == 0 || f.PostgresCPU <= 0 || f.ServerCPU <= 0 || f.WAL <= 0 {
		t.Errorf("nothing was measured: %+v", f)
		return
	}
	want := f.Requests
	if subjects[i].once {
		want = f.Keys
	}
	if f.Orders != want {
		t.Errorf("%s, %s: %d orders, want %d", f.Subject, f.Phase, f.Orders, want)
	}
	// jsonb does not keep the bytes of the article's answers.
	if subjects[i].once && f.Subject != article && f.Differing != 0 {
		t.Errorf("%s, %s: %d answers differ from the first, want 0", f.Subject, f.Phase, f.Differing)
	}
	if f.Phase != fresh && subjects[i].once && f.Keys == f.Requests {
		t.Errorf("%s, %s: nothing was repeated", f.Subject, f.Phase)
	}
	if f.Phase == storm && f.Before <= 0 {
		t.Errorf("%s: nothing ran before the storm", f.Subject)
	}
	if stored := subjects[i].keys != "" || subjects[i].redis; f.Phase == fresh && stored != (f.KeyBytes > 0) {
		t.Errorf("%s: %g bytes per key", f.Subject, f.KeyBytes)
	}
}

func TestCounts_refuseADoubleOrder(t *testing.T) {
	once := subject{name: "guarded", once: true}
	for _, c := range []struct {
		figures figures
		subject subject
		right   bool
	}{
		{figures{Requests: 10, Keys: 5, Orders: 5}, once, true},
		{figures{Requests: 10, Keys: 5, Orders: 6}, once, false},
		{figures{Requests: 10, Keys: 5, Orders: 4}, once, false},
		{figures{Requests: 10, Keys: 5, Orders: 5, Refused: 1}, once, false},
		{figures{}, once, false},
		{figures{Requests: 10, Keys: 5, Orders: 10}, subject{}, true},
		{figures{Requests: 10, Keys: 5, Orders: 9}, subject{}, false},
	} {
		if err := c.figures.counts(c.subject); (err == nil) != c.right {
			t.Errorf("%+v, once %v: %v, want right %v", c.figures, c.subject.once, err, c.right)
		}
	}
}
