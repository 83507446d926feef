package execution

import (
	"errors"
	"sync"
)

// Calls are the effects that are called under one lease, in one run of its handler or in
// several, and what has come of each. The zero value has none. It is safe for concurrent
// use.
type Calls struct {
	mu    sync.Mutex
	known map[effect]*call
	all   []*call // in the order in which they were first called
}

type effect struct{ scope, key string }

// call is what is known of an effect that the handler calls.
type call struct {
	going bool  // it is under way
	ran   bool  // something was called
	why   error // why the handler's own end does not count; nil if there is no reason
}

// Runs says that what an effect calls is called now.
func (c *Calls) Runs(scope, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(scope, key).ran = true
}

// Ran reports whether what an effect calls was ever called.
func (c *Calls) Ran(scope, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(scope, key).ran
}

// Note notes why the handler's own end does not count because of an effect, or that there
// is no reason, and returns what was noted before.
func (c *Calls) Note(scope, key string, why error) (before error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(scope, key)
	before, of.why = of.why, why
	return before
}

// Why is why the handler's own end does not count: the reason that was noted, several
// joined, or nil.
func (c *Calls) Why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var whys []error
	for _, of := range c.all {
		if of.why != nil {
			whys = append(whys, of.why)
		}
	}
	if len(whys) == 1 {
		return whys[0]
	}
	return errors.Join(whys...)
}

func (c *Calls) of(scope, key string) *call {
	if c.known == nil {
		c.known = make(map[effect]*call)
	}
	e := effect{scope, key}
	if c.known[e] == nil {
		c.known[e] = &call{}
		c.all = append(c.all, c.known[e])
	}
	return c.known[e]
}

// Run is one run of a handler, whose calls are among those of its lease.
type Run struct {
	calls    *Calls
	returned bool // under the calls' lock
}

// NewRun is a run that begins now.
func (c *Calls) NewRun() *Run { return &Run{calls: c} }

// Begin begins a call, having noted going of it, unless one of the same effect is under
// way or the handler has returned. exit ends it; before is what was noted so far.
//
//lint:ignore ST1008 before is no error of Begin's own
func (r *Run) Begin(scope, key string, going error) (before error, exit func(), begun bool) {
	c := r.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(scope, key)
	if of.going || r.returned {
		return nil, nil, false
	}
	before, of.going, of.why = of.why, true, going
	return before, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		of.going = false
	}, true
}

// End lets no further call begin: the handler has returned, or was given up. Of one that
// is under way it is known only that (see Begin).
func (r *Run) End() {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	r.returned = true
}
