package storm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/idem-go/idem/internal/shop/bank"
)

const (
	// placeLimit bounds how long a bank that is started again waits for its port,
	// which may be somebody's for a moment.
	placeLimit = 10 * time.Second
	// placePause spaces its tries.
	placePause = 50 * time.Millisecond
	// askLimit bounds one question to the bank.
	askLimit = 5 * time.Second
)

// bankWeather is how a bank is in a storm: slow before and after it commits, so that it
// is killed at both, and from each start on it loses some replies.
var bankWeather = bank.Faults{DelayBefore: 2, DelayAfter: 5, LoseReplies: 2}

// Bank is a bank in a process of its own, which a storm kills and starts again in
// its place: on its log and at its address, so that nobody who pays has to be told.
type Bank struct {
	// URL is where it is found, before and after.
	URL     string
	command func(listen string) *exec.Cmd
	addr    string

	working sync.WaitGroup // a restart
	mu      sync.Mutex
	process *bank.Process // nil while it is down
	faults  bank.Faults   // of every process that is started
	kills   int
	failed  error
}

// OpenBank starts a bank. Command makes the command of a process that runs
// bank.Child on its stdin and stdout, always on the same log; listen is the address
// that it has to have, or empty for one of its own. Close it.
func OpenBank(command func(listen string) *exec.Cmd) (*Bank, error) {
	p, err := bank.StartProcess(command(""))
	if err != nil {
		return nil, err
	}
	return &Bank{URL: p.URL, command: command, addr: p.Addr, process: p}, nil
}

// restart kills the bank with SIGKILL, in the middle of whatever it does, and starts
// another in its place while the storm goes on. It reports whether the bank was there
// to be killed. Not for concurrent use.
func (b *Bank) restart(ctx context.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.process
	if p == nil {
		return false
	}
	b.process = nil
	b.kills++
	b.working.Go(func() {
		p.Kill()
		b.open(ctx)
	})
	return true
}

// open starts a bank where the one before it was.
func (b *Bank) open(ctx context.Context) {
	deadline := time.Now().Add(placeLimit)
	for {
		p, err := bank.StartProcess(b.command(b.addr))
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			if err == nil {
				err = b.setFaults(ctx)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.process, b.failed = p, errors.Join(b.failed, err)
			return
		}
		select {
		case <-time.After(placePause):
		case <-ctx.Done():
		}
	}
}

// trouble gives the bank these faults, and every one that is started in its place.
func (b *Bank) trouble(ctx context.Context, f bank.Faults) error {
	b.mu.Lock()
	b.faults = f
	b.mu.Unlock()
	return b.setFaults(ctx)
}

func (b *Bank) setFaults(ctx context.Context) error {
	b.mu.Lock()
	f := b.faults
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := b.client().SetFaults(ctx, f); err != nil {
		return fmt.Errorf("storm: %w", err)
	}
	return nil
}

// settle waits until the bank is up again, and returns what went wrong.
func (b *Bank) settle() error {
	b.working.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// killed is how often the bank was killed.
func (b *Bank) killed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kills
}

// Close lets the bank finish what is under way, and ends it.
func (b *Bank) Close() error {
	b.working.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil {
		return nil
	}
	p := b.process
	b.process = nil
	return p.Stop()
}

// client asks the bank, wherever its process is.
func (b *Bank) client() *bank.Client { return &bank.Client{URL: b.URL} }

// summary is what the bank's log adds up to.
func (b *Bank) summary(ctx context.Context) (bank.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	s, err := b.client().Summary(ctx)
	if err != nil {
		return s, fmt.Errorf("storm: %w", err)
	}
	return s, nil
}
