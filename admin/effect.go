package admin

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// Status is what has become of an effect.
type Status string

// The statuses of an effect.
const (
	StatusStarted Status = "started" // the intention is committed; the call may be under way
	StatusApplied Status = "applied" // done, with its result
	StatusUnknown Status = "unknown" // done or not: to be settled
	StatusAbsent  Status = "absent"  // known not to be done; it may be started again
)

// Statuses returns the statuses of an effect.
func Statuses() []Status {
	return []Status{StatusStarted, StatusApplied, StatusUnknown, StatusAbsent}
}

// Intent names what causes an effect: a request by its scope and key, or a task by
// its queue and id. The zero Intent is none.
type Intent struct {
	Door       string // request or task
	Scope, Key string
}

// Effect is what is known of one effect. Times are the database's; those that do not
// apply are zero.
type Effect struct {
	Scope  string
	Key    string
	Status Status
	// DownstreamKey is what every call of it sends to the other side; empty for an
	// effect within a transaction.
	DownstreamKey string
	// Input is the SHA-256 of what the effect was to do; nil if nothing was said.
	Input []byte
	// Result is what it has come to. It may hold what only the caller may see: only
	// ShowEffect reads it.
	Result      json.RawMessage
	ResultBytes int64
	// Calls is how often a call was begun, and LastError what the last one failed
	// with, if it has not ended well.
	Calls     int
	LastError string
	// Cause is what the effect was first started by, Owner what called it last:
	// usually the same. An effect within a transaction has no owner.
	Cause, Owner Intent

	CreatedAt, UpdatedAt time.Time
	// IntendedAt is when the intention was committed that the calls since then
	// belong to, CallUntil until when the last call may be under way, KeyedUntil
	// until when the other side honours the downstream key.
	IntendedAt, CallUntil, KeyedUntil time.Time
	// Calling reports that CallUntil had not passed by the database's clock when the
	// effect was read, Within that KeyedUntil had not.
	Calling, Within bool
	// Owned reports that the claim that called it last still held its key, on a
	// lease that was not over.
	Owned bool
}

// Position returns the place right after e.
func (e Effect) Position() Position {
	return Position{CreatedAt: e.CreatedAt, Scope: e.Scope, Key: e.Key}
}

// Settled reports whether it is known what has become of the effect.
func (e Effect) Settled() bool { return e.Status == StatusApplied || e.Status == StatusAbsent }

// Repeatable reports whether the next retry calls a started effect again by itself,
// with the same downstream key. Any other call that was left ends unknown.
func (e Effect) Repeatable() bool { return e.Status == StatusStarted && e.Within }

// effectTimes are the columns of an effect that may be null.
type effectTimes struct{ intended, call, keyed *time.Time }

func (e *Effect) columns(t *effectTimes) []any {
	return []any{
		&e.Scope, &e.Key, &e.Status, &e.DownstreamKey, &e.Input, &e.ResultBytes, &e.Calls, &e.LastError,
		&e.Cause.Door, &e.Cause.Scope, &e.Cause.Key, &e.Owner.Door, &e.Owner.Scope, &e.Owner.Key,
		&e.CreatedAt, &e.UpdatedAt, &t.intended, &t.call, &t.keyed, &e.Calling, &e.Within, &e.Owned,
	}
}

func (e *Effect) set(t effectTimes) {
	e.IntendedAt, e.CallUntil, e.KeyedUntil = orZero(t.intended), orZero(t.call), orZero(t.keyed)
}

// scanEffect reads one row of effects_list, effects_find and key_effects.
func scanEffect(row pgx.CollectableRow) (Effect, error) {
	var e Effect
	var t effectTimes
	err := row.Scan(e.columns(&t)...)
	e.set(t)
	return e, err
}

// scanWholeEffect reads one row of effect_show.
func scanWholeEffect(row pgx.CollectableRow) (Effect, error) {
	var e Effect
	var t effectTimes
	var result []byte
	err := row.Scan(append(e.columns(&t), &result)...)
	e.set(t)
	e.Result = result
	return e, err
}
