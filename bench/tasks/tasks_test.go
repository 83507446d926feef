package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

var withNode = flag.Bool("node", false, "also run the subjects in Node, whose packages npm fetches")

// The subjects' processes are this test's program once more.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processArgument {
		subjects = append(subjects, doubling)
		fail(serve(os.Stdin, os.Stdout))
		return
	}
	os.Exit(m.Run())
}

var tiny = settings{reps: 1, tasks: 200, single: 100, latency: 10, kill: 300, limit: 20 * time.Second}

// It says nothing of speed: a short run on a machine that does other things.
func TestRun_countsAreRightAndNothingIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every subject")
	}
	chosen := slices.DeleteFunc(slices.Clone(subjects), func(s subject) bool { return s.node && !*withNode })
	b := &bench{settings: tiny}
	notRun, err := b.start(t.Context(), append(chosen, doubling), t.Output())
	if err != nil {
		t.Fatal(errors.Join(err, b.stop()))
	}
	for i := range b.subjects {
		b.subjects[i].pool = min(b.subjects[i].pool, 8) // connections take time to make
	}
	last := len(b.subjects) - 1
	t.Run("each task has one effect", func(t *testing.T) { checkRun(t, b, b.subjects[:last]) })
	t.Run("a second effect is refused", func(t *testing.T) {
		_, err := b.measure(t.Context(), b.subjects[last], insert)
		if want := "400 receipts of 200 tasks, want 200"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	})
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a process is left: %v", err)
	}
	if _, err := exec.LookPath("redis-server"); err != nil && !slices.Equal(notRun, []string{"asynq: no redis-server in PATH"}) {
		t.Errorf("not run: %q, want asynq and why", notRun)
	}
}

func checkRun(t *testing.T, b *bench, all []subject) {
	r, err := b.repeat(t.Context(), all, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, phase := range phases {
			if got := r.has(s.name, phase); got != s.takesPart(phase) {
				t.Errorf("%s, %s: measured %v", s.name, phase, got)
			}
		}
	}
	for _, f := range r.Figures {
		checkFigures(t, f)
	}
}

// checkFigures checks what holds on any machine. That each task had one effect has been
// checked by the run itself.
func checkFigures(t *testing.T, f figures) {
	t.Helper()
	s := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == f.Subject })]
	switch {
	case f.Phase == killed:
		if f.Applied == 0 || f.Lost != 0 || f.Undone != 0 || s.once && f.Twice != 0 {
			t.Errorf("%s, %s: %+v", f.Subject, f.Phase, *f.Left)
		}
	case f.Phase == latency:
		if f.Tasks != tiny.latency || f.P50 <= 0 || f.P99 < f.P50 {
			t.Errorf("nothing was measured: %+v", f)
		}
	case f.Tasks == 0 || f.Rate <= 0 || f.CutShort || f.PostgresCPU < 0 || f.ProcessCPU <= 0 || s.redis && f.RedisCPU <= 0 || !s.redis && f.WAL <= 0:
		t.Errorf("nothing was measured: %+v", f)
	}
}

// doubling is a subject that applies each effect twice.
var doubling = subject{name: "doubling", store: "idem", pool: 40,
	open: func(ctx context.Context, pool *pgxpool.Pool, p place) (peer, error) {
		made, err := newForgetting(queue.Config{})(ctx, pool, p)
		return doublingPeer{made}, err
	}}

type doublingPeer struct{ peer }

func (p doublingPeer) work(ctx context.Context, h *handler) (func() error, error) {
	h.Receipt = "insert into receipts (task, amount) select $1, 10 from generate_series(1, 2)"
	return p.peer.work(ctx, h)
}
