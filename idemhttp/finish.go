package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
)

// afterCommitLimit bounds all functions given to AfterCommit together.
const afterCommitLimit = 10 * time.Second

var errNoReference = errors.New("idemhttp: a route that replays a resource needs idem.Reference before it answers success")

// finish ends the claim as the route's policy says and tells how the request
// ends. Nothing of the answer has left yet.
func (x *exchange) finish(ctx context.Context, c holder, own *recording, overflow error, state *runState) (ending, claim.Result) {
	policy := answering(x.route.policy(own.status), own.status, c.Bound(ctx))
	answer := x.answerOf(own, policy, state)
	withhold := tooLarge(answer, x.route.MaxStored)
	refused := x.refusal(overflow, policy, answer)
	var result claim.Result
	switch {
	case refused != nil, policy == RollbackAndFree:
		result = c.Free(ctx)
	case policy == CommitAndStore:
		result = c.Commit(ctx, *answer, withhold)
	case policy == RollbackAndStore:
		result = c.Refuse(ctx, *answer, withhold, state.keepWrites)
	}
	if result.Ending == claim.Freed && refused != nil {
		return failed(refused.code, refused.cause), result
	}
	e := ended(result, ending{own: own, answer: answer, withheld: withhold})
	if result.Ending == claim.Remembered && (policy == CommitAndStore || state.keepWrites) {
		e.afterCommit = state.afterCommit
	}
	if e.own != nil && policy == RollbackAndStore {
		e.outcome = idem.OutcomeRefused
	}
	return e, result
}

// ended is the one switch over how a claim ends.
func ended(result claim.Result, e ending) ending {
	e.err = result.Err
	switch result.Ending {
	case claim.Remembered:
		e.remembered, e.outcome = true, idem.OutcomeExecuted
		return e
	case claim.Freed:
		e.withheld, e.outcome = false, idem.OutcomeReleased
		return e
	case claim.Lost:
		e = found(result.Found)
		e.err = result.Err
		return e
	case claim.Contended:
		return failed(codeInFlight, result.Err)
	case claim.NotApplied:
		return failed(codeNotApplied, result.Err)
	case claim.Bound, claim.Doubtful:
		return failed(codeUnknown, result.Err)
	case claim.CallInFlight:
		return failed(codeInFlight, result.Err)
	case claim.LeaseLost:
		e := failed(codeInFlight, result.Err)
		e.outcome = idem.OutcomeLeaseLost
		return e
	case claim.Unavailable, claim.Rerun:
		return failed(codeUnavailable, result.Err)
	default:
		panic("idemhttp: a claim ended in a way that is not known")
	}
}

// refusal is why an answer cannot be sent at all.
type refusal struct {
	code  string
	cause error
}

func (x *exchange) refusal(overflow error, policy Policy, a *idem.Answer) *refusal {
	switch {
	case errors.Is(overflow, errBudget):
		return &refusal{codeUnavailable, overflow}
	case overflow != nil:
		return &refusal{codeNotApplied, overflow}
	case x.route.Replay == ReplayResource && policy == CommitAndStore && a.Reference == "":
		return &refusal{codeNotApplied, errNoReference}
	}
	return nil
}

// answerOf is what is remembered of a recording, or shared with those who wait. A
// reference stands for what was committed; a refusal is remembered as bytes.
func (x *exchange) answerOf(own *recording, policy Policy, state *runState) *idem.Answer {
	a := &idem.Answer{Status: own.status, Header: x.replayed.pick(own.header, x.w.Header()), Body: own.body}
	if x.route.Replay == ReplayResource && policy == CommitAndStore && state.reference != "" {
		a.Reference, a.Body = state.reference, nil
	}
	return a
}

// maxStoredHeader bounds the header lines that are stored with an answer, in
// bytes: more than any server sends and clients accept.
const maxStoredHeader = 64 << 10

// tooLarge reports whether an answer cannot be remembered as it is.
func tooLarge(a *idem.Answer, maxStored int) bool {
	header := 0
	for _, f := range a.Header {
		header += len(f.Name) + len(f.Value)
	}
	return len(a.Body) > maxStored || header > maxStoredHeader
}

// runAfterCommit runs what the handler has asked for. Those who wait have been
// told already: only this request's own answer comes after it.
func (x *exchange) runAfterCommit(fns []func(context.Context)) {
	if len(fns) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), afterCommitLimit)
	defer cancel()
	for _, fn := range fns {
		x.protect(ctx, fn)
	}
}

// protect runs fn after the commit: its panic changes nothing any more.
func (x *exchange) protect(ctx context.Context, fn func(context.Context)) {
	defer func() {
		if v := recover(); v != nil {
			p := &panicked{value: v, stack: debug.Stack()}
			x.observe(idem.Event{Kind: idem.EventPanic, Err: fmt.Errorf("in AfterCommit: %w", p.err())})
		}
	}()
	fn(ctx)
}
