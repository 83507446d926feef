package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
)

// A context that ends once the tasks are enqueued costs the caller no connection.
func TestWake_leavesTheCallersConnectionOpen(t *testing.T) {
	f := newFloorAt(t, pgtest.Direct(t, pgtest.NewURL(t)))
	db, proxy := f.through(t)
	kind := queue.Define[job]("job", queue.Options{})
	w := listen(t, f.pool)
	conn, err := db.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for name, at := range map[string]queue.Conn{"a connection": conn.Conn(), "one of a pool": conn} {
		wakes := proxy.Add(faultproxy.Rule{Name: "the wake", When: faultproxy.Executes("select pg_notify"), Do: faultproxy.Delay(500 * time.Millisecond)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := kind.Enqueue(ctx, at, queue.Unkeyed, job{N: 1})
			ended <- err
		}()
		select {
		case <-wakes.Reached():
		case <-time.After(10 * time.Second):
			t.Fatal("nobody is woken")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if conn.Conn().IsClosed() {
			t.Fatalf("%s was closed under its owner", name)
		}
		if got := w.next(); got != kind.Queue() {
			t.Errorf("%s: the queue %q was told of", name, got)
		}
	}
	f.wantCount(2, "select count(*) from idem.tasks")
}
