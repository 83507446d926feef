package idem

import "errors"

// The conditions that callers tell apart with errors.Is. Messages may gain
// detail; these identities stay.
var (
	// ErrUnavailable reports that the database could not be reached or could
	// not answer, so that nothing was decided. The same call may be repeated
	// with the same key. A scope function or replay check that wraps it makes
	// the guard answer 503 instead of a refusal.
	ErrUnavailable = errors.New("idem: unavailable")

	// ErrNotMigrated reports that the database lacks the schema, or holds an
	// older one than this program needs. Run Migrate, or "idem migrate up".
	ErrNotMigrated = errors.New("idem: the schema is not migrated; run idem.Migrate or `idem migrate up`")

	// ErrSchemaNewer reports that the database's schema was made by a newer
	// program. Upgrade this program; the schema is never taken back.
	ErrSchemaNewer = errors.New("idem: the schema is newer than this program; upgrade the program")

	// ErrNotPrepared reports a server whose COMMIT waits for standbys, and a pool
	// that would not tell when it did not. Call Prepare on the pool's
	// configuration before the pool is made.
	ErrNotPrepared = errors.New("idem: the server has synchronous standbys; call idem.Prepare on the pool's configuration before making the pool")

	// ErrKeyInvalid reports a key that breaks the rules of ParseKey.
	ErrKeyInvalid = errors.New("idem: invalid key")

	// ErrScopeInvalid reports a scope that is empty, longer than MaxScope
	// bytes, not valid UTF-8, or that holds a NUL byte.
	ErrScopeInvalid = errors.New("idem: invalid scope")

	// ErrNoExecution reports that a context does not belong to a guarded handler, nor
	// to a task's, so that it carries no transaction.
	ErrNoExecution = errors.New("idem: the context does not belong to a guarded handler or a task's; pass on the context that the handler was given")

	// ErrAnswered is what every statement returns on a route with LazyClaim once
	// the key turned out not to be this request's: it has an answer, belongs to
	// another request or is in flight. What the handler wrote is dropped, and
	// whatever it answers, the guard answers for it.
	ErrAnswered = errors.New("idem: the request has been answered already; return from the handler")

	// ErrTxOwned is returned by Commit on the transaction that Tx gives: the guard
	// commits it together with the answer, and the worker together with the end of the
	// task, so the handler just returns. The request ends as not applied, and the
	// attempt at the task as failed, since its handler did not mean what would be
	// committed.
	ErrTxOwned = errors.New("idem: the guard or the worker commits this transaction, together with the answer or the end of the task; return from the handler instead")

	// ErrEffectInvalid reports an effect that cannot be: a key or an input over its
	// limit, a function that is nil, a result that cannot be encoded, a window of
	// zero. The text says what to do. Nothing has been written, unless it is the
	// result of a call that was made, which is then unknown.
	ErrEffectInvalid = errors.New("idem: invalid effect")

	// ErrMismatch reports an effect that has been started with another Input.
	// Nothing has been written.
	ErrMismatch = errors.New("idem: the effect was started with another input")

	// ErrInFlight reports an effect that somebody else is working on, who is alive.
	// For a handler whose Call has met it, the guard answers in-flight, whatever it
	// writes; the worker runs its task again later, at no cost of attempts.
	ErrInFlight = errors.New("idem: the effect is in flight elsewhere; ask again later")

	// ErrOutcomeUnknown reports an effect of which nobody knows whether it was
	// applied. For a handler whose Call has met it, the guard answers outcome-unknown,
	// whatever it writes; the attempt at its task has failed, whatever it returns. A
	// retry with the same key or the next attempt, evidence (Effect.Reconcile) or an
	// operator (`idem effects settle`) ends it.
	ErrOutcomeUnknown = errors.New("idem: whether the effect was applied is unknown")

	// ErrLeaseLost reports that another has taken over the claim, or the task: nothing
	// more can be recorded under it. Return from the handler; the guard answers
	// in-flight, and the worker leaves the task to the other.
	ErrLeaseLost = errors.New("idem: the lease was lost; return from the handler")

	// ErrNoLease reports a Call outside a handler on a lease: an intention must be
	// committed before the call, so it cannot share a transaction with an answer or with
	// the end of a task. Set Route.Lease; in a task, use HandleLeased.
	ErrNoLease = errors.New("idem: Call needs a handler on a lease; set Route.Lease, or handle the task with HandleLeased, and pass on the context that the handler was given")

	// ErrFinal reports a Call after the final transaction has begun: its outcome could
	// not be committed apart from it. Make every Call before the first use of Tx.
	ErrFinal = errors.New("idem: the final transaction has begun; make every Call before the first statement in idem.Tx")

	// ErrPanicked is in the Err of events, and never returned: a handler has panicked or
	// left by runtime.Goexit, or what the program does around it has.
	ErrPanicked = errors.New("idem: the program has panicked")
)
