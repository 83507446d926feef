package idemhttp

import (
	"context"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
)

// ending is how a request ends: with a problem, with the handler's own answer,
// or with an answer that was stored or shared. Exactly one of problem, own and
// answer is told; a panic is passed on, and the problem beside it is what those
// who wait are told.
type ending struct {
	problem    string       // a code of the table
	unsafe     bool         // this case of the problem never allows a new key
	detail     string       // instead of the table's, if not empty
	own        *recording   // the handler's answer, for the request that ran it
	answer     *idem.Answer // what a repeat or a waiter gets
	remembered bool         // answer is stored: a repeat of it is a replay
	withheld   bool         // the answer was too large to be remembered
	unguarded  bool         // there was no key
	panicked   *panicked
	elsewhere  bool // the key is in flight in another process
	hold       *hold
	// afterCommit is what the handler has asked for; it runs when those who wait
	// have been told.
	afterCommit []func(context.Context)
	outcome     idem.Outcome
	err         error         // the cause, for events
	by          claim.Request // whose outcome it is
	others      bool          // which is another request's
}

// failed is the end by a problem.
func failed(code string, cause error) ending {
	return ending{problem: code, err: cause}
}

// of is the same end, told to another request than the one that has come to it.
func (e ending) of(by claim.Request) ending {
	e.by, e.others = by, true
	return e
}

// shared is the end of one who waited for e: the remembered answer as a replay,
// or one that is not remembered as it is, since the waiter is the same request.
func (e ending) shared(maxStored int) ending {
	return e.told(maxStored).of(e.by)
}

func (e ending) told(maxStored int) ending {
	switch {
	case e.panicked != nil && e.problem == "":
		return failed(codeNotApplied, nil)
	case e.problem != "":
		return ending{problem: e.problem, detail: e.detail, unsafe: e.unsafe, err: e.err}
	case e.withheld, tooLarge(e.answer, maxStored):
		return failed(codeWithheld, nil)
	case e.remembered:
		return replayed(e.answer)
	default:
		return ending{answer: e.answer, outcome: idem.OutcomeReleased}
	}
}

// replayed is the end by a stored answer.
func replayed(a *idem.Answer) ending {
	return ending{answer: a, remembered: true, outcome: idem.OutcomeReplayed}
}
