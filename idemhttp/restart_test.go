package idemhttp_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

// load sends intents, each until its answer is definite, from several clients at
// once, and keeps the answers.
type load struct {
	*rig
	stop     context.CancelFunc
	clients  sync.WaitGroup
	intents  atomic.Int64 // begun; an intent's number is its customer
	finished atomic.Int64
	away     atomic.Int64 // answers of 503 with Retry-After

	mu      sync.Mutex
	answers map[int64]string
}

func startLoad(r *rig, clients int) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{rig: r, stop: stop, answers: map[int64]string{}}
	r.t.Cleanup(stop)
	for range clients {
		l.clients.Go(func() {
			for ctx.Err() == nil {
				l.intend(l.intents.Add(1))
			}
		})
	}
	return l
}

// intend sends one intent until its answer is definite.
func (l *load) intend(n int64) {
	s := post("/orders", fmt.Sprint("k", n), fmt.Sprintf(`{"customer_id":%d,"amount":1}`, n))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		got := l.send(s)
		switch {
		case got.status == 201:
			l.mu.Lock()
			l.answers[n] = got.body
			l.mu.Unlock()
			l.finished.Add(1)
			return
		case got.status == 503 && got.problem() == "unavailable" && got.header.Get("Retry-After") != "":
			l.away.Add(1)
		case got.status == 425 && got.problem() == "in-flight":
		default:
			l.t.Errorf("intent %d got %d %q %v", n, got.status, got.body, got.err)
			return
		}
	}
	l.t.Errorf("intent %d got no definite answer within a minute", n)
}

// end ends the load and compares what the clients were told with the rows.
func (l *load) end() {
	l.t.Helper()
	l.stop()
	l.clients.Wait()
	intents := int(l.intents.Load())
	l.wantRows("select count(*) from orders", intents)
	l.wantRows("select count(distinct customer) from orders", intents)
	l.wantRows("select count(*) from idem.idempotency_keys", intents)
	if len(l.answers) != intents {
		l.t.Errorf("%d of %d intents have an answer", len(l.answers), intents)
	}
	for n, answer := range l.answers {
		l.wantRows(`select count(*) from orders where customer = $1
			and $2 = format(E'{"id":%s,"customer_id":%s,"amount":1}\n', id, customer)`, 1, n, answer)
	}
}

func TestD3_restartUnderLoad(t *testing.T) {
	s := newServer(t, nil)
	r := rigOn(t, pgtest.Pool(t, s.url()))
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{Wait: time.Second}, createOrder(&runs))
	r.serve()
	l := startLoad(r, 6)
	for crash := range 2 {
		before := l.finished.Load()
		eventually(t, "orders are made", func() bool { return l.finished.Load() >= before+30 })
		away := l.away.Load()
		s.crash()
		eventually(t, "clients are told to come back", func() bool { return l.away.Load() >= away+12 })
		s.start()
		t.Logf("crash %d: %d orders before it, %d times 503", crash+1, l.finished.Load(), l.away.Load()-away)
	}
	before := l.finished.Load()
	eventually(t, "orders are made again", func() bool { return l.finished.Load() >= before+30 })
	l.end()
	for i := range 20 { // full service
		r.want(r.send(post("/orders", fmt.Sprint("after", i), body)), 201, "")
	}
}
