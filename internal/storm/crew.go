package storm

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"sync"
)

// startTries is how often a client process is started: one may be killed before it
// can say that it is there.
const startTries = 3

// crew are the client processes.
type crew struct{ seats []*seat }

func newCrew(n int, command func(role string) *exec.Cmd, orders clientOrders) *crew {
	c := &crew{}
	for range n {
		c.seats = append(c.seats, &seat{command: command, orders: orders})
	}
	return c
}

// close kills all processes and lets no new one start.
func (c *crew) close() {
	for _, s := range c.seats {
		s.close()
	}
}

// seat is the place of a client process and of those who come after it.
type seat struct {
	command func(role string) *exec.Cmd
	orders  clientOrders

	mu      sync.Mutex
	process *clientProcess
	closed  bool
}

// errClosed reports a seat whose storm is over.
var errClosed = errors.New("storm: it is over")

// do lets the seat's process send a request. A process that was killed has taken
// its answer along, so that the next one asks again: with the same key.
func (s *seat) do(ctx context.Context, r request) (answer, error) {
	for {
		p, err := s.current(ctx)
		if err != nil {
			return answer{}, err
		}
		if a, ok := p.ask(ctx, r); ok {
			return a, nil
		}
		if err := ctx.Err(); err != nil {
			return answer{}, err
		}
	}
}

// current is the seat's process, a new one if it was killed.
func (s *seat) current(ctx context.Context) (*clientProcess, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.process != nil && !s.process.hasEnded() {
		return s.process, nil
	}
	var err error
	for range startTries {
		if s.process, err = startClient(ctx, s.command(RoleClient), s.orders); err == nil || ctx.Err() != nil {
			break
		}
	}
	return s.process, err
}

// kill kills the process, if there is one. It reports whether there was.
func (s *seat) kill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.hasEnded() {
		return false
	}
	s.process.kill()
	return true
}

func (s *seat) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.process != nil {
		s.process.kill()
	}
}

// clientProcess is one client process as the storm sees it.
type clientProcess struct {
	*child
	mu      sync.Mutex
	next    int
	waiting map[int]chan<- answer
}

func startClient(ctx context.Context, cmd *exec.Cmd, orders clientOrders) (*clientProcess, error) {
	p := &clientProcess{waiting: map[int]chan<- answer{}}
	var err error
	p.child, err = startChild(ctx, cmd, orders, &clientReady{}, p.hear)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// hear gives the next answer to who waits for it.
func (p *clientProcess) hear(lines *json.Decoder) error {
	var a answer
	if err := lines.Decode(&a); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiter, ok := p.waiting[a.ID]; ok {
		waiter <- a
		delete(p.waiting, a.ID)
	}
	return nil
}

// ask lets the process send a request, and waits for the answer. There is none if
// the process is gone or ctx ends.
func (p *clientProcess) ask(ctx context.Context, r request) (answer, bool) {
	got := make(chan answer, 1)
	if p.tell(r, got) != nil {
		<-p.gone // nobody reads its stdin any more
		return answer{}, false
	}
	select {
	case a := <-got:
		return a, true
	case <-ctx.Done():
	case <-p.gone:
	}
	select {
	case a := <-got: // the last word of a process that is gone
		return a, true
	default:
		return answer{}, false
	}
}

func (p *clientProcess) tell(r request, got chan<- answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	r.ID = p.next
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p.waiting[r.ID] = got
	_, err = p.stdin.Write(append(line, '\n'))
	return err
}
