package idemhttp_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// crowdPool is how many connections each process of a crowd has: one for the
// crowd, whatever its size, and one for another key.
const crowdPool = 2

// crowded is a process whose slow route has a crowd of duplicates and whose
// quick one has the other keys.
type crowded struct {
	*slow
	quick atomic.Int64
}

func newCrowded(t *testing.T, url string) *crowded {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = crowdPool
	r := rigOn(t, pgtest.PoolWith(t, config))
	c := &crowded{}
	r.handle("/quick", idemhttp.Route{}, createOrder(&c.quick))
	c.slow = newSlow(r, idemhttp.Route{Wait: time.Minute})
	c.openAll()
	return c
}

// others sends n other keys, one after the other. None may have to wait for a
// connection, since the crowd leaves all but one.
func (c *crowded) others(n int, prefix string) {
	c.t.Helper()
	waited := c.pool.Stat().EmptyAcquireCount()
	made := c.pool.Stat().NewConnsCount()
	for i := range n {
		c.want(c.send(post("/quick", fmt.Sprint(prefix, i), body)), 201, "")
	}
	if w := c.pool.Stat().EmptyAcquireCount() - waited; w != 0 {
		c.t.Errorf("of %d other keys, %d had to wait for a connection beside the crowd, made %d", n, w, c.pool.Stat().NewConnsCount()-made)
	}
}

// openAll opens all connections of the pool: making one counts as waiting for it.
func (c *crowded) openAll() {
	c.t.Helper()
	for range crowdPool {
		conn, err := c.pool.Acquire(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		defer conn.Release()
	}
}

// wantOneConnection samples how many connections the crowd holds.
func (c *crowded) wantOneConnection() {
	c.t.Helper()
	for range 50 {
		if n := c.pool.Stat().AcquiredConns(); n > 1 {
			c.t.Errorf("%d connections are held by a process whose duplicates wait, want at most one", n)
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// wantCrowd waits for the crowd's answers.
func wantCrowd(t *testing.T, crowd []<-chan reply, want string) {
	t.Helper()
	for _, d := range crowd {
		if got := <-d; got.status != 201 || got.body != want || !got.replayed() {
			t.Fatalf("one of the crowd got %d %q %v, replayed %v; want %q", got.status, got.body, got.err, got.replayed(), want)
		}
	}
}

func TestC4_aThousandDuplicatesInOneProcess(t *testing.T) {
	a := newCrowded(t, pgtest.NewURL(t))
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	crowd := a.beginMany(1000, post("/slow", "k", "201"))
	a.waiters("k", 1000)
	a.wantOneConnection()
	a.others(50, "other")
	a.release()
	one := <-first
	a.want(one, 201, "")
	wantCrowd(t, crowd, one.body)
	a.wantRows("select count(*) from orders", 1+50)
	if n := a.runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}
