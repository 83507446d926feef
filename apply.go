package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/execution"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/jackc/pgx/v5"
)

// Apply runs fn in tx unless the effect has been applied, and then returns the
// result that was recorded instead; applied says which. What fn writes with the
// transaction that it is given, the fact and its result commit together with tx or
// not at all: an error or a panic of fn leaves neither, also if the caller goes on
// and commits. The fact comes first, so a second transaction waits for the first
// (at most its lock_timeout, 5 s where it has none) and finds what that has
// recorded. Above read committed it gets a serialization failure (40001) instead,
// after which a guard or a worker runs the handler again.
//
// tx is a transaction of the caller's on the database that Idem was opened on; in a
// guarded handler usually idem.Tx(ctx), in a task's the one that it is given. In a
// handler on a lease it may also be another one, of its own: then the claim, or the
// task, is held to the end of tx, which must be shorter than the lease, and the claim is
// bound to its request. An effect never expires: whoever applies it again, years later,
// gets the result.
//
// The error is fn's, or, for errors.Is, ErrEffectInvalid, ErrMismatch,
// ErrOutcomeUnknown (a Call has left it so), ErrInFlight (a Call is under way),
// ErrLeaseLost, pgx.ErrTxClosed, or the database's. Like tx it is not for concurrent
// use; transactions may call it at the same time.
func Apply[R any](ctx context.Context, tx pgx.Tx, e Effect, fn func(ctx context.Context, tx pgx.Tx) (R, error)) (result R, applied bool, err error) {
	if err := applicable(tx, e, fn == nil); err != nil {
		return result, false, err
	}
	if err := encodable[R](); err != nil {
		return result, false, err
	}
	input, err := e.input()
	if err != nil {
		return result, false, err
	}
	a := application{effect: e, input: input, tx: tx}
	recorded, applied, err := a.apply(ctx, func(nested pgx.Tx) ([]byte, error) {
		if result, err = fn(ctx, nested); err != nil {
			return nil, err
		}
		return recordable(result)
	})
	if err != nil || applied {
		return result, applied, err
	}
	result, err = decoded[R](e, recorded)
	return result, false, err
}

func applicable(tx pgx.Tx, e Effect, nothing bool) error {
	switch {
	case nothing:
		return fmt.Errorf("%w: the function of %q is nil; give Apply what it is to do", ErrEffectInvalid, e.Key)
	case tx == nil:
		return fmt.Errorf("%w: the transaction of %q is nil; give Apply idem.Tx(ctx), or one of your own", ErrEffectInvalid, e.Key)
	}
	return e.valid(false)
}

// application is one Apply.
type application struct {
	effect Effect
	input  []byte
	tx     pgx.Tx
}

// apply returns the encoded result, and whether it was applied now.
func (a application) apply(ctx context.Context, fn func(pgx.Tx) ([]byte, error)) ([]byte, bool, error) {
	if err := a.bind(ctx); err != nil {
		return nil, false, err
	}
	nested, err := a.tx.Begin(ctx)
	if err != nil {
		if errors.Is(err, ErrLeaseLost) { // as the final transaction finds out
			a.fenced(ctx)
		}
		return nil, false, fmt.Errorf("idem: apply %s: %w", a.effect.Key, err)
	}
	done := false
	defer func() {
		if !done { // also when fn panics, or ctx has ended
			undo(ctx, nested)
		}
	}()
	mine, err := a.state(ctx, nested)
	if err != nil {
		return nil, false, err
	}
	if !mine {
		if err := nested.Commit(ctx); err != nil {
			return nil, false, err
		}
		done = true
		return a.recorded(ctx)
	}
	result, err := fn(savepoint{nested})
	if err != nil {
		return nil, false, err
	}
	tag, err := nested.Exec(ctx, effects.Applied, a.effect.Scope, a.effect.Key, result)
	if err == nil && tag.RowsAffected() != 1 {
		err = errGone
	}
	if err != nil {
		return nil, false, fmt.Errorf("idem: record %s: %w", a.effect.Key, err)
	}
	if err := nested.Commit(ctx); err != nil {
		return nil, false, err
	}
	done = true
	a.tell(ctx, EffectApplied)
	return result, true, nil
}

// savepoint is the transaction that the function given to Apply gets: its end is
// Apply's.
type savepoint struct{ pgx.Tx }

func (savepoint) Commit(context.Context) error   { return errOwned }
func (savepoint) Rollback(context.Context) error { return errOwned }

var errOwned = fmt.Errorf("%w: Apply ends its savepoint; return a result or an error", ErrTxOwned)

// undoLimit bounds the rollback to an effect's savepoint.
const undoLimit = 5 * time.Second

// undo takes back what an effect has written, so that the caller may go on and commit.
// Where that fails, as with rows that fn has left open, nobody must commit: the
// connection is closed. A guard and a worker see to that themselves.
func undo(ctx context.Context, nested pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	err := nested.Rollback(ctx)
	if _, guarded := nested.(interface{ Guarded() }); err == nil || guarded {
		return
	}
	if conn := nested.Conn(); conn != nil {
		_ = conn.Close(ctx)
	}
}

// bind holds the claim, or the task, of the handler that applies to the end of the
// transaction. The final transaction of a handler on a lease does so from its beginning.
func (a application) bind(ctx context.Context) error {
	x, ok := execution.From(ctx)
	if !ok {
		return nil
	}
	tx := unwrapped(a.tx)
	if leased, is := x.(execution.Leased); is {
		if leased.Within(tx) {
			return nil
		}
		if err := leased.Final(); err != nil {
			return fmt.Errorf("%w: apply %s in idem.Tx itself", err, a.effect.Key)
		}
	}
	held, err := x.Hold(ctx, tx)
	switch {
	case err != nil:
		return fmt.Errorf("idem: apply %s: %w", a.effect.Key, err)
	case !held:
		a.fenced(ctx)
		return fmt.Errorf("%w: apply %s", ErrLeaseLost, a.effect.Key)
	}
	return nil
}

// unwrapped is the transaction behind the one that an outer Apply has given out.
func unwrapped(tx pgx.Tx) pgx.Tx {
	if s, outer := tx.(savepoint); outer {
		return s.Tx
	}
	return tx
}

// state states that the effect is being applied, and reports false if it is there
// already.
func (a application) state(ctx context.Context, nested pgx.Tx) (mine bool, err error) {
	door, scope, key := cause(ctx)
	err = nested.QueryRow(ctx, effects.Insert, a.effect.Scope, a.effect.Key, a.input, door, scope, key).Scan(&mine, nil)
	if err != nil || mine {
		return mine, wrapped("apply "+a.effect.Key, err)
	}
	found, err := readEffect(ctx, nested, a.effect, asker{})
	if err != nil || found.status != absent || !found.is(a.input) {
		return false, err
	}
	tag, err := nested.Exec(ctx, effects.Again, a.effect.Scope, a.effect.Key, door, scope, key)
	return tag.RowsAffected() == 1, wrapped("apply "+a.effect.Key, err)
}

// recorded is what is known of an effect that this transaction does not apply.
func (a application) recorded(ctx context.Context) ([]byte, bool, error) {
	found, err := readEffect(ctx, a.tx, a.effect, asker{})
	switch {
	case err != nil:
		return nil, false, err
	case !found.is(a.input):
		return nil, false, fmt.Errorf("%w: %s", ErrMismatch, a.effect.Key)
	case found.status == applied:
		a.tell(ctx, EffectSkipped)
		return found.result, false, nil
	case found.status == started && found.theirs:
		return nil, false, fmt.Errorf("%w: %s", ErrInFlight, a.effect.Key)
	default:
		return nil, false, fmt.Errorf("%w: %s", ErrOutcomeUnknown, a.effect.Key)
	}
}

func (a application) tell(ctx context.Context, r EffectResult) {
	tellEffect(ctx, Event{Kind: EventEffect, Effect: a.effect.Key, Result: r, Attempted: true})
}

// fenced tells that nothing was applied because the lease was lost.
func (a application) fenced(ctx context.Context) {
	tellEffect(ctx, Event{Kind: EventEffect, Effect: a.effect.Key, Result: EffectFenced})
}

// effectRow is an effect as it is stored.
type effectRow struct {
	status        status
	input, result []byte
	downstreamKey string
	fence         *uuid.UUID
	calls         int
	theirs        bool // its owner is another, and lives
	calling       bool // the last call may be under way
	within        bool // the window of its key is not over
}

// is reports whether a repeat with input is the same effect.
func (r effectRow) is(input []byte) bool { return bytes.Equal(r.input, input) }

// querier is what a single statement needs: a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

var errGone = errors.New("the effect was there a moment ago and is gone: its row was deleted by hand")

// asker is the claim, or the task, that asks for an effect, if it may be its own.
type asker struct {
	fence            *uuid.UUID
	door, scope, key *string
}

// readEffect reads an effect that is there.
func readEffect(ctx context.Context, q querier, e Effect, by asker) (r effectRow, err error) {
	err = q.QueryRow(ctx, effects.Read, e.Scope, e.Key, by.fence, by.door, by.scope, by.key).Scan(
		&r.status, &r.input, &r.result, &r.downstreamKey, &r.fence, &r.calls, &r.theirs, &r.calling, &r.within)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errGone
	}
	return r, wrapped("read "+e.Key, err)
}

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("idem: %s: %w", doing, err)
}

// cause is what an effect is started by, as far as ctx tells.
func cause(ctx context.Context) (door, scope, key *string) {
	x, ok := execution.From(ctx)
	if !ok {
		return nil, nil, nil
	}
	d, s, k := x.Cause()
	if k == "" {
		return nil, nil, nil
	}
	return &d, &s, &k
}

func leasedFrom(ctx context.Context) (execution.Leased, bool) {
	x, _ := execution.From(ctx)
	leased, ok := x.(execution.Leased)
	return leased, ok
}
