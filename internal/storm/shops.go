package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// shopLease is short, so that a retry need not wait long for the payment of a shop
// that was killed, and long enough for a shop that is only slow.
const shopLease = 1500 * time.Millisecond

// shopCount is how many shop processes share the database.
const shopCount = 2

// shops are the shop processes, behind the network.
type shops struct {
	command func(role string) *exec.Cmd
	orders  shopOrders
	network *network
	observe func(context.Context, idem.Event) // may be nil

	working sync.WaitGroup // restarts
	mu      sync.Mutex
	running [shopCount]*child // nil while it is down
	kills   int
	failed  error
}

// openShops starts all of them.
func openShops(ctx context.Context, command func(role string) *exec.Cmd, orders shopOrders, n *network,
	observe func(context.Context, idem.Event)) (*shops, error) {
	s := &shops{command: command, orders: orders, network: n, observe: observe}
	for i := range shopCount {
		s.working.Go(func() { s.open(ctx, i) })
	}
	s.working.Wait()
	if s.failed != nil {
		s.close()
		return nil, s.failed
	}
	return s, nil
}

// open starts one and lets the network find it.
func (s *shops) open(ctx context.Context, i int) {
	var ready shopReady
	events := func(lines *json.Decoder) error { return hear(lines, s.observe) }
	c, err := startChild(ctx, s.command(RoleShop), s.orders, &ready, events)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = errors.Join(s.failed, err)
		return
	}
	s.running[i] = c
	s.network.up(i, ready.Addr)
}

// restart kills a shop with SIGKILL, in the middle of whatever it does, and
// starts another in its place while the storm goes on. It reports whether the
// shop was there to be killed. Not for concurrent use.
func (s *shops) restart(ctx context.Context, i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.running[i]
	if c == nil {
		return false
	}
	s.running[i] = nil
	s.noteEnd(c)
	s.kills++
	s.network.down(i)
	s.working.Go(func() {
		c.kill()
		s.open(ctx, i)
	})
	return true
}

// noteEnd takes note of a shop that has ended before it was told to. Call it with
// the lock held.
func (s *shops) noteEnd(c *child) {
	if c.hasEnded() {
		s.failed = errors.Join(s.failed, fmt.Errorf("storm: a shop ended by itself%s", c.stderr))
	}
}

// settle waits until every shop is up again, and returns what went wrong.
func (s *shops) settle() error {
	s.working.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.running {
		if c != nil {
			s.noteEnd(c)
		}
	}
	return s.failed
}

// stop lets all of them finish what they do, and ends them.
func (s *shops) stop() error {
	err := s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.running {
		if c != nil {
			c.stop()
			s.running[i] = nil
		}
	}
	return err
}

// close kills all of them.
func (s *shops) close() {
	s.working.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.running {
		if c != nil {
			c.kill()
			s.running[i] = nil
		}
	}
}

// killed is how often a shop was killed.
func (s *shops) killed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}
