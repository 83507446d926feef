package idem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/internal/downstream"
	"github.com/idem-go/idem/internal/execution"
	"github.com/idem-go/idem/internal/jsontext"
)

const (
	// The pauses between the calls of one keyed effect: full jitter below a bound
	// that doubles.
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// Call applies an effect outside the database, in a handler on a lease, of a request or
// of a task: it commits the intention together with the effect's downstream key, calls fn
// with that key, and records what came of it, all under the fence of the claim or the
// task. If the effect has been applied before, by this one or by any other, fn does not
// run and the recorded result is returned.
//
// fn ends in one of three ways: with a result, of which a refusal by the other side
// is one; with NotApplied(err), only with proof; with any other error, a panic, a
// timeout, a cancellation or a lost lease, which means unknown. Then, if the other
// side honours keys (Keyed), the call is repeated with the same key, after a pause,
// until the handler's limit, and by every later retry or attempt until the window is over.
// Otherwise the effect is unknown and is never repeated by itself: see
// Effect.Reconcile.
//
// fn gets a context that ends with Effect.Timeout, the handler's limit or the lease,
// and must heed it; requests that an idemclient.Transport sends with it carry the
// downstream key. Give the key to the other side in every call: it is the same in
// every attempt and from every door.
//
// The error is the one in NotApplied, or, for errors.Is, ErrEffectInvalid,
// ErrNoLease, ErrFinal, ErrMismatch, ErrInFlight, ErrOutcomeUnknown (with the cause),
// ErrLeaseLost or ErrUnavailable (the intention could not be committed; fn has not
// run). Unless it is known in the end what every effect that the handler called has come
// to, the guard answers for it, whatever it writes, and the worker does not take its task
// for done, whatever it returns. Different effects of one handler may be called at the
// same time. End a transaction of your own, in which you have applied an effect, before a
// Call: it holds the claim, or the task.
func Call[R any](ctx context.Context, e Effect, fn func(ctx context.Context, downstreamKey string) (R, error)) (result R, err error) {
	x, err := callable(ctx, e, fn == nil)
	if err != nil {
		return result, err
	}
	if err := encodable[R](); err != nil {
		return result, err
	}
	input, err := e.input()
	if err != nil {
		return result, err
	}
	before, exit, refused := x.Enter(e.Scope, e.Key, errGoing) // noted also if fn panics, or nobody waits for it
	if refused != nil {
		return result, fmt.Errorf("%s: %w", e.Key, refused)
	}
	defer exit()
	door, scope, key := x.Cause()
	c := &calling{effect: e, input: input, x: x, door: door, scope: scope, key: key, reads: reads[R]}
	ctx, end := traceCall(ctx, e)
	ended := errFellOut // unless fn returns
	defer func() { end(c.event(c.told, ended)) }()
	recorded, err := c.call(ctx, func(ctx context.Context, downstreamKey string) ([]byte, error) {
		r, err := fn(ctx, downstreamKey)
		if err != nil {
			return nil, err
		}
		b, err := recordable(r)
		if err != nil {
			return nil, &unencodable{err}
		}
		return b, nil
	})
	if err == nil {
		result, err = decoded[R](e, recorded)
	}
	x.Note(e.Scope, e.Key, c.note(before, err))
	ended = err
	return result, err
}

var errFellOut = fmt.Errorf("%w, or left by runtime.Goexit, in a call", ErrPanicked)

var errGoing = fmt.Errorf("%w: the call has not ended", ErrOutcomeUnknown)

// note is why the handler's own end does not count because of a Call that ended with err,
// whatever it makes of that; nil if it is known what the effect has come to. before is what
// was so before the Call.
func (c *calling) note(before, err error) error {
	switch {
	case err == nil, c.retracted:
		return nil
	case errors.Is(err, ErrMismatch):
		return before
	default:
		return err
	}
}

func callable(ctx context.Context, e Effect, nothing bool) (execution.Leased, error) {
	x, leased := leasedFrom(ctx)
	switch {
	case nothing:
		return nil, fmt.Errorf("%w: the function of %q is nil; give Call what it is to do", ErrEffectInvalid, e.Key)
	case !leased:
		return nil, ErrNoLease
	}
	if err := x.Final(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, e.Key)
	}
	return x, e.valid(true)
}

// calling is one Call.
type calling struct {
	effect           Effect
	input            []byte
	x                execution.Leased
	door, scope, key string                    // of the claim, or the task
	reads            func(result []byte) error // whether it is one of this Call's type
	number           int                       // of the effect's calls, the one that is being made
	reconciled       bool                      // evidence was asked for
	told             EffectResult              // what was told last of the effect
	retracted        bool                      // the effect is known not to be applied
}

// verdict is what an effect's row says about calling it.
type verdict int

const (
	callIt   verdict = iota + 1 // the intention is committed: call
	skipIt                      // it is applied: here is the result
	settleIt                    // it is unknown: ask for evidence
	askIt                       // something has changed: look again
	stopped                     // there is an error
)

// call looks at the effect and calls it, until there is a result or an error.
func (c *calling) call(ctx context.Context, fn callFunc) ([]byte, error) {
	instance, err := c.x.Instance(ctx)
	if err != nil {
		return nil, err
	}
	key := downstreamKey(instance, c.effect.Scope, c.effect.Key)
	var last error // of a call whose outcome is unknown
	for try := 0; ; {
		result, again, err := c.once(ctx, key, fn)
		switch {
		case !again && last != nil && c.undecided(err):
			return nil, c.left(ctx, errors.Join(last, err))
		case !again:
			return result, err
		case err == nil: // something has changed meanwhile
			continue
		}
		last = err
		if !pause(ctx, try) {
			return nil, c.left(ctx, err)
		}
		try++
	}
}

// undecided reports whether err says nothing of what the effect has come to.
func (c *calling) undecided(err error) bool {
	for _, told := range []error{ErrOutcomeUnknown, ErrInFlight, ErrLeaseLost, ErrMismatch} {
		if errors.Is(err, told) {
			return false
		}
	}
	return err != nil && !c.retracted
}

type callFunc func(ctx context.Context, downstreamKey string) ([]byte, error)

// once commits the intention, unless there is an outcome, and calls. Again says that
// it may be done again, after a pause if there is an error.
func (c *calling) once(ctx context.Context, key string, fn callFunc) (result []byte, again bool, err error) {
	// Its time begins before the intention says until when it may be under way.
	callCtx, cancel := context.WithTimeout(ctx, cmp.Or(c.effect.Timeout, DefaultTimeout))
	defer cancel()
	v, found, err := c.intend(callCtx, key)
	switch v {
	case skipIt:
		tellEffect(ctx, c.event(EffectSkipped, nil))
		return found.result, false, nil
	case settleIt:
		again, err = c.reconcile(ctx, found)
		return nil, again, err
	case askIt:
		return nil, true, nil
	case stopped:
		return nil, false, err
	}
	earlier := found.status == started // a call before this one, whose outcome is unknown
	if late(callCtx) {
		if earlier {
			return nil, true, errLate
		}
		return nil, false, c.unmade(ctx, errLate)
	}
	if result, err = c.run(callCtx, cmp.Or(found.downstreamKey, key), fn); err == nil {
		return result, false, c.record(ctx, result)
	}
	var invalid *unencodable
	switch {
	case proves(err) && !earlier:
		return nil, false, c.retract(ctx, err)
	case c.effect.Provider.keyed && !errors.As(err, &invalid):
		return nil, true, err
	default:
		return nil, false, c.doubt(ctx, err)
	}
}

var errLate = errors.New("the call's time was over before it was made")

// late reports whether a call may not begin any more: a process that was frozen wakes
// up before its timers do.
func late(ctx context.Context) bool {
	deadline, _ := ctx.Deadline()
	return ctx.Err() != nil || time.Until(deadline) <= 0
}

// run calls fn. Of one that panics, nothing is known.
func (c *calling) run(ctx context.Context, key string, fn callFunc) ([]byte, error) {
	returned := false
	defer func() {
		if !returned && !c.effect.Provider.keyed {
			_ = c.doubt(ctx, errPanicked)
		}
	}()
	c.x.Runs(c.effect.Scope, c.effect.Key)
	result, err := fn(downstream.With(ctx, key), key)
	returned = true
	return result, err
}

var errPanicked = errors.New("the function given to Call did not return")

// unencodable is a result that exists and cannot be recorded.
type unencodable struct{ error }

func (u *unencodable) Unwrap() error { return u.error }

// reads reports why a result is not an R.
func reads[R any](result []byte) error {
	var r R
	return jsontext.Discreet(json.Unmarshal(result, &r))
}

// pause waits before the next call, and reports false if there is no time for one.
func pause(ctx context.Context, try int) bool {
	bound := min(firstBackoff<<min(try, 10), maxBackoff)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(rand.N(bound)):
		return ctx.Err() == nil
	}
}

// unknown ends a call whose outcome nobody knows: what is stored says so, or lets a
// later retry or attempt call again.
func (c *calling) unknown(ctx context.Context, cause error) error {
	if errors.Is(context.Cause(ctx), ErrLeaseLost) {
		return fmt.Errorf("%w: %w", ErrLeaseLost, cause)
	}
	err := fmt.Errorf("%w: %s: %w", ErrOutcomeUnknown, c.effect.Key, cause)
	tellEffect(ctx, c.event(EffectUnknown, err))
	return err
}

// left is unknown of a call that stays as it is: where the other side honours keys, nobody
// has to look at it yet.
func (c *calling) left(ctx context.Context, cause error) error {
	if c.effect.Provider.keyed {
		cause = fmt.Errorf("%w; %w", cause, errCallsAgain)
	}
	return c.unknown(ctx, cause)
}

var errCallsAgain = errors.New("the next retry or attempt calls again, with the same key")

func (c *calling) event(r EffectResult, err error) Event {
	c.told = r
	return Event{Kind: EventEffect, Effect: c.effect.Key, Result: r, Err: err}
}
