package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
)

// intend commits the intention to call, or says why not to.
func (c *calling) intend(ctx context.Context, key string) (verdict, effectRow, error) {
	e := c.effect
	var owned, started bool
	c.number = 1
	err := c.commit(ctx, effects.Start, []any{e.Scope, e.Key, c.input, key, seconds(ctx), c.window(),
		c.scope, c.key, c.x.Fence(), c.door}, &owned, &started)
	switch {
	case err != nil && !c.x.Ran(e.Scope, e.Key):
		return stopped, effectRow{}, c.unmade(ctx, err)
	case err != nil:
		return stopped, effectRow{}, unavailable("commit the intention of "+e.Key, err)
	case !owned:
		return stopped, effectRow{}, c.fenced(ctx)
	case started:
		c.x.Bind(true)
		return callIt, effectRow{}, nil
	}
	fence := c.x.Fence()
	found, err := readEffect(ctx, c.x.Pool(), e, asker{&fence, &c.door, &c.scope, &c.key})
	if err != nil {
		return stopped, effectRow{}, unavailable("look at "+e.Key, err)
	}
	v, err := c.judge(ctx, key, found)
	return v, found, err
}

// judge is the one switch over what has become of an effect.
func (c *calling) judge(ctx context.Context, key string, found effectRow) (verdict, error) {
	switch {
	case !found.is(c.input):
		return stopped, fmt.Errorf("%w: %s", ErrMismatch, c.effect.Key)
	case found.status == applied:
		return skipIt, nil
	case found.status == absent:
		return c.restart(ctx, key, found)
	case found.status == started && found.theirs:
		return stopped, fmt.Errorf("%w: %s", ErrInFlight, c.effect.Key)
	case found.status == started && c.effect.Provider.keyed && found.within:
		return c.restart(ctx, key, found)
	case found.status == started:
		return c.outlast(ctx, found)
	default:
		return settleIt, nil
	}
}

// restart commits that the effect is called again, with the same downstream key.
func (c *calling) restart(ctx context.Context, key string, found effectRow) (verdict, error) {
	var owned, restarted bool
	c.number = found.calls + 1
	err := c.commit(ctx, effects.Restart, []any{c.effect.Scope, c.effect.Key, found.fence, key, seconds(ctx), c.window(),
		c.scope, c.key, c.x.Fence(), found.calls, c.door}, &owned, &restarted)
	switch {
	case err != nil && found.status == absent:
		return stopped, c.unmade(ctx, err)
	case err != nil:
		return stopped, unavailable("commit the intention of "+c.effect.Key, err)
	case !owned:
		return stopped, c.fenced(ctx)
	case !restarted:
		return askIt, nil
	}
	c.x.Bind(true)
	return callIt, nil
}

// retractLimit bounds the attempt to take an intention back.
const retractLimit = 2 * time.Second

// unmade ends a call that was not made, nor any before it of unknown outcome, though
// its intention may be committed. It is taken back, since the next Call could not know
// that.
func (c *calling) unmade(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retractLimit)
	defer cancel()
	_, _ = c.writeOnce(ctx, effects.Retract, "the call was not made: "+lastError(cause), absent) // or it is unknown
	return unavailable("commit the intention of "+c.effect.Key, cause)
}

// outlast finds an effect unknown whose owner has gone and which may not be called
// again.
func (c *calling) outlast(ctx context.Context, found effectRow) (verdict, error) {
	_, err := c.exec(ctx, effects.Outlast, c.effect.Scope, c.effect.Key, found.fence, c.effect.Provider.keyed)
	if err != nil {
		return stopped, unavailable("look at "+c.effect.Key, err)
	}
	return askIt, nil
}

var (
	errNoReconcile = errors.New("an operator must settle it")
	errNoEvidence  = errors.New("Effect.Reconcile has no evidence that counts yet")
)

// reconcile asks for evidence of an unknown effect, once in a Call, and reports whether
// to look again.
func (c *calling) reconcile(ctx context.Context, found effectRow) (again bool, err error) {
	if c.effect.Reconcile == nil {
		return false, c.unknown(ctx, errNoReconcile)
	}
	if c.reconciled {
		return false, c.unknown(ctx, errNoEvidence)
	}
	c.reconciled = true
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.effect.Timeout, DefaultTimeout))
	defer cancel()
	evidence, err := c.effect.Reconcile(ctx, found.downstreamKey)
	switch {
	case err != nil:
		return false, c.unknown(ctx, fmt.Errorf("Effect.Reconcile: %w", err))
	case evidence.found == applied:
		return c.found(ctx, evidence.result)
	case evidence.found == absent && !found.calling:
		return c.missing(ctx, found)
	default:
		return false, c.unknown(ctx, errNoEvidence)
	}
}

// found settles an effect as applied, by evidence.
func (c *calling) found(ctx context.Context, result any) (again bool, err error) {
	b, err := encoded("the result given to Found", result, MaxResult)
	if err == nil {
		err = c.reads(b)
	}
	if err != nil {
		return false, c.unknown(ctx, fmt.Errorf("the result given to Found is not one of this Call: %w", err))
	}
	settled, err := c.exec(ctx, effects.FindApplied, c.effect.Scope, c.effect.Key, c.x.Fence(), b, c.scope, c.key, c.door)
	if err != nil {
		return false, c.unknown(ctx, unavailable("settle "+c.effect.Key, err))
	}
	if settled {
		tellEffect(ctx, c.event(EffectApplied, nil))
	}
	return true, nil // where nothing was settled, it is known why by now
}

// missing settles an effect as absent, by evidence of the call that was found, which
// could not be under way any more.
func (c *calling) missing(ctx context.Context, found effectRow) (again bool, err error) {
	settled, err := c.exec(ctx, effects.FindAbsent, c.effect.Scope, c.effect.Key, c.x.Fence(), c.scope, c.key, found.fence, found.calls, c.door)
	switch {
	case err != nil:
		return false, c.unknown(ctx, unavailable("settle "+c.effect.Key, err))
	case !settled:
		return false, c.unknown(ctx, errNoEvidence)
	}
	tellEffect(ctx, c.event(EffectAbsent, nil))
	return true, nil
}

// fenced ends a call whose claim has lost its key, or whose worker its task.
func (c *calling) fenced(ctx context.Context) error {
	c.x.Lose()
	tellEffect(ctx, c.event(EffectFenced, nil))
	return fmt.Errorf("%w: %s", ErrLeaseLost, c.effect.Key)
}

var errUnconfirmed = errors.New("no synchronous standby has confirmed the commit")

// maxCommits bounds how often a statement is run that meets a serialization failure,
// where that is the database's default level.
const maxCommits = 4

// commit runs a statement that commits by itself and returns one row.
func (c *calling) commit(ctx context.Context, sql string, args []any, dest ...any) (err error) {
	for range maxCommits {
		err = c.confirmed(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(dest...) })
		if !sqlstate.Rerunnable(err) {
			return err
		}
	}
	return err
}

// exec runs a statement that commits by itself, and reports whether it wrote a row.
func (c *calling) exec(ctx context.Context, sql string, args ...any) (written bool, err error) {
	err = c.confirmed(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, sql, args...)
		written = tag.RowsAffected() == 1
		return err
	})
	return written, err
}

// confirmed runs do, which commits, and makes sure that the standbys have it that the
// server waits for.
func (c *calling) confirmed(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := c.x.Pool().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	if err := do(conn.Conn()); err != nil {
		return err
	}
	if standby.Warned(conn.Conn().PgConn()) {
		return errUnconfirmed
	}
	return nil
}

// window is how long the other side honours the key, in seconds; nil if it does not.
func (c *calling) window() *float64 {
	if !c.effect.Provider.keyed {
		return nil
	}
	s := c.effect.Provider.window.Seconds()
	return &s
}

// seconds is how long a call that begins now may take.
func seconds(ctx context.Context) float64 {
	deadline, _ := ctx.Deadline()
	return max(time.Until(deadline).Seconds(), 0)
}
