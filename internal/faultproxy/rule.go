package faultproxy

import (
	"sync"
	"sync/atomic"
)

// Rule is a fault and the message at which it is done.
type Rule struct {
	// Name says which rule it is in a test's messages.
	Name string
	// When chooses the message; nil chooses every one. It is called for one
	// message at a time, in the order in which the proxy sees them, also by
	// connections that run at the same time; it must not call the proxy.
	When func(Message) bool
	// Times is how often the fault is done. Zero means once; below zero, every
	// time.
	Times int
	// Do is the fault.
	Do Action
}

// Armed is a rule at work. Its methods may be called concurrently.
type Armed struct {
	rule     Rule
	reached  chan struct{}
	released chan struct{}
	release  sync.Once
	cuts     atomic.Bool // what is held is cut when it is released

	mu     sync.Mutex
	left   int // below zero: without end
	visits int
}

func arm(r Rule) *Armed {
	if r.Times == 0 {
		r.Times = 1
	}
	return &Armed{rule: r, left: r.Times, reached: make(chan struct{}), released: make(chan struct{})}
}

// Name is the rule's.
func (a *Armed) Name() string { return a.rule.Name }

// Reached is closed when the rule's point has been visited for the first time:
// the connection is cut, or the message is being held. A test that does not see
// it has tested nothing.
func (a *Armed) Reached() <-chan struct{} { return a.reached }

// Visits is how often the fault was done.
func (a *Armed) Visits() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.visits
}

// Release lets pass what Hold and Late hold back, now and from now on.
func (a *Armed) Release() { a.release.Do(func() { close(a.released) }) }

// Cut ends the connection of what Hold and Late hold back, now and from now on, as
// the action Cut does: the message is lost.
func (a *Armed) Cut() {
	a.cuts.Store(true)
	a.Release()
}

// Disarm ends the rule. What it has done stays done; what it holds is held until
// Release.
func (a *Armed) Disarm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = 0
}

// chooses reports whether the rule's point is m.
func (a *Armed) chooses(m Message) bool {
	return !a.over() && (a.rule.When == nil || a.rule.When(m))
}

// take uses up one time.
func (a *Armed) take() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left > 0 {
		a.left--
	}
}

func (a *Armed) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left == 0
}

// visited notes that the fault is done, or begun.
func (a *Armed) visited() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.visits++; a.visits == 1 {
		close(a.reached)
	}
}
