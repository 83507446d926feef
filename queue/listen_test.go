package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
)

// listening is a worker's LISTEN, on whichever connection.
func listening(f *floor) int {
	return valueOf[int](f, "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen idem_cancel%'")
}

func TestT22_aListenerThatIsHalfOpenComesBack(t *testing.T) {
	f := newFloorAt(t, pgtest.Direct(t, pgtest.NewURL(t)))
	db, proxy := f.through(t)
	// With the worker's connection for LISTEN nothing arrives any more, and nothing says so.
	var conn int
	half := proxy.Add(faultproxy.Rule{Name: "half open", Times: -1, Do: faultproxy.Drop(), When: func(m faultproxy.Message) bool {
		if faultproxy.Completes("LISTEN")(m) && strings.HasPrefix(m.SQL, "listen idem_cancel") && conn == 0 {
			conn = m.Conn
			return false // this still arrives
		}
		return conn != 0 && m.Conn == conn && m.Type != "ReadyForQuery"
	}})
	const poll = 200 * time.Millisecond
	kind := queue.Define[job]("job", queue.Options{})
	w := queue.NewWorker(db, queue.Config{Poll: poll})
	kind.Handle(w, runs)
	f.run(w)
	f.until("it listens", 10*time.Second, func() bool { return listening(f) == 1 })
	f.enqueue(kind, job{N: 1}) // which wakes nobody
	f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	// Not by what comes after the listener's death, of which nothing is known for 10 s.
	f.wantCount(1, "select count(*) from idem.tasks where updated_at - created_at < $1", poll+3*time.Second)
	<-half.Reached()
	f.until("it is told that the listener died", 20*time.Second, func() bool { return f.troubled("listen") > 0 })
	f.until("another listens", 20*time.Second, func() bool { return listening(f) == 2 }) // the server knows nothing of the first one's death
}

// troubled counts the worker's own troubles with a word in them.
func (f *floor) troubled(word string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Kind == idem.EventWorker && strings.Contains(e.Err.Error(), word) {
			n++
		}
	}
	return n
}

func TestListen_wakesAnIdleWorkerAtOnce(t *testing.T) {
	f := newFloorAt(t, pgtest.Direct(t, pgtest.NewURL(t)))
	kind := queue.Define[job]("job", queue.Options{})
	w := queue.NewWorker(f.db, queue.Config{Poll: time.Hour})
	kind.Handle(w, runs)
	f.run(w)
	f.until("it listens", 10*time.Second, func() bool { return listening(f) == 1 })
	f.enqueue(kind, jobs(100, "")...)
	f.untilCount(100, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	// And so does one that is asked for by hand, after a commit of one's own.
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kind.Enqueue(t.Context(), tx, queue.Unkeyed, job{N: 101}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	queue.Wake(context.Background(), f.db, kind.Queue())
	f.untilCount(101, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
}
