package queue_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/queue"
)

// counting counts the round trips on connections that lead through a proxy, and those of
// them in whose statements all of these words are.
func counting(proxy *faultproxy.Postgres, words ...string) (all, of *atomic.Int64) {
	all, of = new(atomic.Int64), new(atomic.Int64)
	last := make(map[int]string)
	proxy.Add(faultproxy.Rule{Name: "count", Times: -1, When: func(m faultproxy.Message) bool {
		switch {
		case m.Direction != faultproxy.FromClient:
		case m.Type == "Execute" || m.Type == "Query":
			last[m.Conn] += m.SQL + ";"
		case m.Type == "Sync":
			all.Add(1)
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(last[m.Conn], word) }) {
				of.Add(1)
			}
			last[m.Conn] = ""
		}
		return false
	}})
	return all, of
}

// A handler in the transaction costs two round trips: its statement travels with BEGIN,
// and the end of the task with COMMIT. The rest is shared by many.
func TestRoundTrips_ofTasks(t *testing.T) {
	const n = 300
	for name, c := range map[string]struct {
		leased bool
		most   int64 // of all, without those for which pgx prepares a statement
	}{"in the transaction": {false, 3 * n}, "on a lease": {true, n}} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			db, proxy := f.through(t)
			kind := queue.Define[job]("job", queue.Options{})
			f.enqueue(kind, jobs(n, "")...)
			all, begins := counting(proxy, "begin", "insert into runs")
			_, ends := counting(proxy, "with finished as", "commit")
			w := queue.NewWorker(db, queue.Config{Concurrency: 8})
			if c.leased {
				kind.HandleLeased(w, func(context.Context, job) error { return nil })
			} else {
				kind.Handle(w, runs)
			}
			stop := f.run(w)
			f.untilCount(n, 20*time.Second, "select count(*) from idem.tasks where status = 'done'")
			got := all.Load()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if b, e := begins.Load(), ends.Load(); !c.leased && (b != n || e != n) {
				t.Errorf("%d transactions were begun and %d committed in a round trip each, want %d", b, e, n)
			}
			t.Logf("%d tasks cost %d round trips", n, got)
			if got > c.most {
				t.Errorf("they cost %d round trips, want %d at most", got, c.most)
			}
		})
	}
}
