package idem

// Outcomes are all outcomes of a request, in the order in which they are declared.
func Outcomes() []Outcome {
	return []Outcome{OutcomeExecuted, OutcomeReplayed, OutcomeRefused, OutcomeReleased, OutcomeMismatch,
		OutcomeInFlight, OutcomeKeyMissing, OutcomeKeyInvalid, OutcomeUnguarded, OutcomeUnauthenticated, OutcomeReplayRefused,
		OutcomeBodyTooLarge, OutcomeWithheld, OutcomeExpired, OutcomeUnknown, OutcomeLeaseLost, OutcomeUnavailable}
}

// TaskResults are all results of an attempt.
func TaskResults() []TaskResult {
	return []TaskResult{TaskDone, TaskRetried, TaskFailed, TaskSnoozed, TaskCancelled, TaskLeaseLost}
}

// EffectResults are all results of an effect.
func EffectResults() []EffectResult {
	return []EffectResult{EffectApplied, EffectSkipped, EffectUnknown, EffectAbsent, EffectFenced}
}

// EventKinds are all kinds of events.
func EventKinds() []EventKind {
	return []EventKind{EventRoute, EventHandler, EventStart, EventRequest, EventRerun, EventPanic, EventSweep, EventEffect, EventTask, EventWorker}
}

// SweptTables are the tables that Sweep gives space back in.
func SweptTables() []string { return []string{tableKeys, tableTasks, tableTakes} }

// The tables of a sweep, as Event.Table names them.
const (
	tableKeys  = "idempotency_keys"
	tableTasks = "tasks"
	tableTakes = "takes"
)
