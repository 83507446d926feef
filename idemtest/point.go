package idemtest

import (
	"fmt"
	"slices"

	"github.com/idem-go/idem/internal/faultproxy"
)

type step = faultproxy.Step

// rehearsal is what a request does where nothing is killed.
type rehearsal struct {
	steps []step // the messages between the handler and the database
	calls []call // of the system outside
}

// point is where a handler is killed.
type point interface {
	fmt.Stringer
	// cut has the connection cut there, by a life that has begun.
	cut(l *life) trap
	// hold has all stop there, so that the process can be killed.
	hold(l *life) trap
}

// trap is a point that waits for its request.
type trap struct {
	reached <-chan struct{}
	bury    func() // once the process is dead: what becomes of what is held
}

// messagePoint is a message, which is lost or arrives.
type messagePoint struct {
	step    step
	arrives bool
}

// String describes the point in one line.
func (p messagePoint) String() string {
	fate := "lost"
	if p.arrives {
		fate = "the last to arrive"
	}
	return fmt.Sprintf("%v being %s", p.step, fate)
}

func (p messagePoint) cut(l *life) trap {
	fault := faultproxy.Cut()
	if p.arrives {
		fault = faultproxy.After(fault)
	}
	return trap{reached: p.arm(l, fault).Reached()}
}

func (p messagePoint) hold(l *life) trap {
	armed := p.arm(l, faultproxy.Hold())
	bury := l.proxy.CutAll
	if p.arrives {
		bury = armed.Release
	}
	return trap{armed.Reached(), bury}
}

func (p messagePoint) arm(l *life, fault faultproxy.Action) *faultproxy.Armed {
	return l.proxy.Add(faultproxy.Rule{Name: p.String(), When: ignoringBeats(p.step.When()), Do: fault})
}

// callPoint is a call of the system outside, and what it meets.
type callPoint struct {
	call call
	fate fate
}

// String describes the point in one line.
func (p callPoint) String() string { return fmt.Sprintf("call %v being %v", p.call, p.fate) }

func (p callPoint) cut(l *life) trap  { return p.arm(l, false) }
func (p callPoint) hold(l *life) trap { return p.arm(l, true) }

func (p callPoint) arm(l *life, held bool) trap {
	t := &trapped{callPoint: p, held: held, reached: make(chan struct{})}
	l.outside.begin(t)
	return trap{t.reached, func() {}} // the dead one's connection ends
}

// cutPoints are all fates of every message and of every call. That a message is the
// last to arrive is the same as that the next is lost, if that follows at once on its
// way.
func cutPoints(r rehearsal) []point {
	var points []point
	for _, p := range messagePoints(r.steps) {
		points = append(points, p)
	}
	for _, c := range r.calls {
		points = append(points, callPoint{c, requestLost}, callPoint{c, replyLost}, callPoint{c, replyLast})
	}
	return points
}

// killPoints are those of cutPoints at which a dead client makes a difference:
// what is sent to one is lost, whatever it is.
func killPoints(r rehearsal) []point {
	return slices.DeleteFunc(cutPoints(r), func(p point) bool {
		switch p := p.(type) {
		case messagePoint:
			return p.arrives && p.step.Direction == faultproxy.FromServer
		case callPoint:
			return p.fate == replyLast
		}
		return false
	})
}

func messagePoints(steps []step) []messagePoint {
	var points []messagePoint
	steps = ends(steps)
	for i, s := range steps {
		points = append(points, messagePoint{s, false})
		if followed := i+1 < len(steps) && sameWay(s, steps[i+1]); !followed {
			points = append(points, messagePoint{s, true})
		}
	}
	return points
}

// ends leaves out what lies between the first and the last of messages that are
// alike and follow each other, such as the rows of one result.
func ends(steps []step) []step {
	var kept []step
	for i, s := range steps {
		inside := i > 0 && i < len(steps)-1 && alike(steps[i-1], s) && alike(s, steps[i+1])
		if !inside {
			kept = append(kept, s)
		}
	}
	return kept
}

func alike(a, b step) bool {
	return sameWay(a, b) && a.Type == b.Type && a.SQL == b.SQL && a.Tag == b.Tag
}

func sameWay(a, b step) bool { return a.Conn == b.Conn && a.Direction == b.Direction }
