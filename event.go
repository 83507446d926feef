package idem

import (
	"context"
	"time"

	"github.com/idem-go/idem/internal/execution"
)

// Outcome is how one request ended for its client. The set is closed; it is
// the label of metrics and the word of logs.
type Outcome string

// The outcomes of a request.
const (
	OutcomeExecuted        Outcome = "executed"        // ran, committed, remembered
	OutcomeReplayed        Outcome = "replayed"        // got the stored answer
	OutcomeRefused         Outcome = "refused"         // a remembered refusal, first time
	OutcomeReleased        Outcome = "released"        // ran, rolled back, not remembered
	OutcomeMismatch        Outcome = "mismatch"        // same key, other request
	OutcomeInFlight        Outcome = "in_flight"       // still running after the wait
	OutcomeKeyMissing      Outcome = "key_missing"     // no key on a guarded route
	OutcomeKeyInvalid      Outcome = "key_invalid"     // a malformed key, or two
	OutcomeUnguarded       Outcome = "unguarded"       // no key on a route where it is optional
	OutcomeUnauthenticated Outcome = "unauthenticated" // the scope function failed
	OutcomeReplayRefused   Outcome = "replay_refused"  // the caller lost the right to the answer
	OutcomeBodyTooLarge    Outcome = "body_too_large"  // over the limit of the body
	OutcomeWithheld        Outcome = "withheld"        // the answer was too large to store
	OutcomeExpired         Outcome = "expired"         // the answer's time is over, the key is remembered
	OutcomeUnknown         Outcome = "unknown"         // committed or not: an operator must settle it
	OutcomeLeaseLost       Outcome = "lease_lost"      // another has taken over the claim
	OutcomeUnavailable     Outcome = "unavailable"     // the database is away, or a limit was reached
)

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	// EventRoute is raised once for every route, when Guard.Route makes it: who counts
	// may begin at zero.
	EventRoute EventKind = "route"
	// EventHandler is raised once for every kind of task when its worker starts: the same
	// for Queue and TaskKind.
	EventHandler EventKind = "handler"
	// EventStart is raised once for every request on a guarded route when it arrives, with
	// nothing but the Route: neither scope nor key has been looked at.
	EventStart EventKind = "start"
	// EventRequest is raised once for every EventStart, after the request's
	// end: Outcome is what its client was told, and what it says of a
	// commit has been seen.
	EventRequest EventKind = "request"
	// EventRerun is raised when a handler is run again because its transaction
	// met a serialization failure or a deadlock. Nothing has been committed.
	EventRerun EventKind = "rerun"
	// EventPanic is raised when a handler, or a function given to AfterCommit,
	// panics, or what the program does around a handler. Err wraps ErrPanicked, and holds
	// the value and the stack of a handler's.
	EventPanic EventKind = "panic"
	// EventSweep is raised for every table of a sweep that removed or stripped rows, or
	// failed there.
	EventSweep EventKind = "sweep"
	// EventEffect is raised for every Apply and Call in a handler, of a request or a task,
	// that ends without an error of the program's: Result says what became of the effect. In
	// an Apply it is Attempted. An Apply elsewhere has nobody to tell.
	EventEffect EventKind = "effect"
	// EventTask is raised once for every attempt at a task, after its end: TaskResult says
	// how it ended, and what it says of a commit has been seen.
	EventTask EventKind = "task"
	// EventWorker is raised when something of a worker's own has failed, which it will try
	// again: the database is away, for example; or, once at its start, when the pool is too
	// small for it, or queue.Config.Queues has queues that it has no handler for.
	EventWorker EventKind = "worker"
)

// TaskResult is how one attempt at a task ended. The set is closed; it is the label of
// metrics and the word of logs.
type TaskResult string

// The results of an attempt.
const (
	TaskDone      TaskResult = "done"       // the task is done
	TaskRetried   TaskResult = "retried"    // it failed; the task waits for the next one
	TaskFailed    TaskResult = "failed"     // it failed, and the task with it: a dead letter
	TaskSnoozed   TaskResult = "snoozed"    // the task waits, at no cost of attempts
	TaskCancelled TaskResult = "cancelled"  // the task is not wanted any more
	TaskLeaseLost TaskResult = "lease_lost" // another has the task; nothing was recorded
)

// EffectResult is what became of an effect. The set is closed; it is the label of
// metrics and the word of logs.
type EffectResult string

// The results of an effect.
const (
	EffectApplied EffectResult = "applied" // applied, and recorded
	EffectSkipped EffectResult = "skipped" // it was applied before
	EffectUnknown EffectResult = "unknown" // nobody knows
	EffectAbsent  EffectResult = "absent"  // known not to be applied
	EffectFenced  EffectResult = "fenced"  // not recorded: the lease was lost
)

// Event is one thing that an operator may want to know of. Fields that do not
// apply are zero. It never holds a body, a token or a stored answer.
type Event struct {
	Kind    EventKind
	Route   string        // Route.Name
	Scope   string        // whose key; not logged by LogEvents
	Key     string        // the key, once it was found valid
	Request string        // the request's id, if it has one: see idemhttp.Config.RequestID
	Outcome Outcome       // of EventRequest
	Status  int           // the HTTP status that was answered
	Elapsed time.Duration // from the request's arrival to its answer
	Waited  time.Duration // the part of Elapsed spent waiting for the first request
	// Of EventSweep: Rows of Table were removed, and the answers of Stripped more; Lag is
	// by how much the time of the oldest that was removed was over.
	Table    string // idempotency_keys, tasks or takes
	Rows     int64
	Stripped int64
	Lag      time.Duration
	Effect   string       // Effect.Key, of EventEffect
	Result   EffectResult // of EventEffect
	// Of EventTask, and Queue of EventWorker: Key is the task's, Attempt its number, from
	// 1, Delay how long it had been due when it was taken, and Elapsed the handler's time.
	// Key, Queue, TaskKind, TaskID and Attempt are those of an EventEffect in a task, too.
	Queue      string
	TaskKind   string
	TaskID     int64
	TaskResult TaskResult
	Attempt    int
	Takes      int // how often the task has been taken, this time too; 0 if that is not known
	Delay      time.Duration
	// Attempted says that the event was raised inside a transaction, whose commit it
	// has not seen.
	Attempted bool
	// FirstRequest is, of a request that was told what another one has come to, that one's
	// id, if it had one; Origin is its trace context (W3C traceparent), if it was traced. Of
	// a task, Origin is the trace context in which it was enqueued.
	FirstRequest, Origin string
	Err                  error // why, where there is a cause
}

// observer is what an execution offers to whom it belongs.
type observer interface{ Observe(Event) }

// tellEffect hands an event of an effect to the handle that ctx's handler runs on.
func tellEffect(ctx context.Context, e Event) {
	x, _ := execution.From(ctx)
	if o, ok := x.(observer); ok {
		o.Observe(e)
	}
}
