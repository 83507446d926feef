package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
)

const (
	// settleTries bounds how often a settlement is tried whose effect changes while
	// it is looked at: somebody works on it, then.
	settleTries = 3
	// settleLimit bounds one try.
	settleLimit = 10 * time.Second
)

// ErrSettlement reports a Settlement that says neither applied, with a result, nor
// absent, without one, that corrects an absence, or that has a negative number of calls.
var ErrSettlement = errors.New("admin: invalid settlement")

// Why a settlement is refused; each is an ErrRefused, too.
var (
	// ErrSettled: it is known what has become of the effect.
	ErrSettled = fmt.Errorf("%w: the effect is settled", ErrRefused)
	// ErrEffectInFlight: the claim that has called the effect lives, and will record
	// what comes of it.
	ErrEffectInFlight = fmt.Errorf("%w: the effect is in flight", ErrRefused)
	// ErrCalling: the last call may still be carried out by the other side, so that
	// its absence proves nothing yet.
	ErrCalling = fmt.Errorf("%w: the last call may still be under way", ErrRefused)
	// ErrAnotherCall: the effect has another number of calls than the Settlement says: it
	// was called after the other side was asked.
	ErrAnotherCall = fmt.Errorf("%w: the evidence is of another call", ErrRefused)
	// ErrUncorrectable: no person has settled the effect as applied.
	ErrUncorrectable = fmt.Errorf("%w: only a result that a person has given can be corrected", ErrRefused)
)

// errUnconfirmed is a settlement that may be lost.
var errUnconfirmed = errors.New("it is settled here, but no synchronous standby has confirmed it: a failover may lose it; idem why tells")

// Settlement says what has become of an effect, by whose decision, and why.
type Settlement struct {
	Scope, Key string
	// As is StatusApplied or StatusAbsent.
	As Status
	// Result is, for StatusApplied, the JSON of what the function given to Call would
	// have returned: what every later Call returns. At most idem.MaxResult bytes.
	Result json.RawMessage
	// Correct replaces the result of an effect that a person has settled as applied
	// before, for one that the program cannot read. Without it nobody overrides what
	// somebody else has settled a moment ago.
	Correct bool
	// Calls is how many calls the effect had (Effect.Calls) when the other side was
	// asked: what it said is evidence of no later one, and the settlement is refused if
	// the effect has been called since. Zero does not say; then it counts for whatever
	// call is the last by now.
	Calls int
	// Actor and Reason are written down in the audit, for ever: 1 to MaxActor and 1
	// to MaxReason bytes of UTF-8. The reason is the evidence.
	Actor, Reason string
}

func (s Settlement) check() error {
	return errors.Join(idem.ValidScope(s.Scope), ValidEffectKey(s.Key), s.checkResult(), validAudit(s.Actor, s.Reason))
}

func (s Settlement) checkResult() error {
	switch {
	case s.Calls < 0:
		return fmt.Errorf("%w: no effect has %d calls", ErrSettlement, s.Calls)
	case s.As == StatusAbsent && s.Correct:
		return fmt.Errorf("%w: only the result of an applied effect is corrected", ErrSettlement)
	case s.As == StatusAbsent && s.Result == nil:
		return nil
	case s.As == StatusAbsent:
		return fmt.Errorf("%w: what was not done has no result", ErrSettlement)
	case s.As != StatusApplied:
		return fmt.Errorf("%w: an effect is settled as %s or %s, not as %q", ErrSettlement, StatusApplied, StatusAbsent, s.As)
	case len(s.Result) > idem.MaxResult:
		return fmt.Errorf("%w: the result has %d bytes, at most %d are allowed", ErrSettlement, len(s.Result), idem.MaxResult)
	case !json.Valid(s.Result):
		return fmt.Errorf("%w: the result is not JSON; give what the program's call would have returned, null if that is nothing", ErrSettlement)
	}
	return nil
}

// SettleEffect decides, by a person's evidence, what has become of an effect that is
// unknown, or that is started and whose owner has gone: its claim's lease is over or
// lost, and its last call can not be under way any more. Absent is not believed
// before that, whatever the status, and evidence that says its Settlement.Calls is not
// believed of a later call. Who decided and why is written down by the same statement.
// The next retry of the request or task goes on from there: behind an applied effect with
// the given result, and with a new call of an absent one. Of several at once one settles;
// with Settlement.Correct the result that a person has given is replaced.
//
// Errors: ErrNoEffect; ErrRefused with its reason ErrSettled, ErrEffectInFlight,
// ErrCalling, ErrAnotherCall or ErrUncorrectable; ErrSettlement, ErrAudit, ErrEffectKey, idem.ErrScopeInvalid;
// idem.ErrUnavailable, after which ShowEffect tells whether it was settled.
func SettleEffect(ctx context.Context, db *idem.DB, s Settlement) (Change, error) {
	if err := s.check(); err != nil {
		return Change{}, err
	}
	for range settleTries {
		change, err := settleOnce(ctx, db, s)
		if !errors.Is(err, pgx.ErrNoRows) {
			return change, failure(ctx, "settle an effect", err)
		}
		e, err := ShowEffect(ctx, db, s.Scope, s.Key)
		if err != nil {
			return Change{}, err
		}
		if err := e.unsettleable(s); err != nil {
			return Change{}, err
		}
	}
	return Change{}, ErrEffectInFlight
}

// settleOnce settles the effect if its row allows it; pgx.ErrNoRows says that it does
// not. What it has begun does not depend on the caller's patience.
func settleOnce(ctx context.Context, db *idem.DB, s Settlement) (Change, error) {
	conn, err := db.Pool().Acquire(ctx)
	if err != nil {
		return Change{}, err
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	rows, err := querySettle(ctx, conn.Conn(), s)
	if err != nil {
		return Change{}, err
	}
	change, err := pgx.CollectExactlyOneRow(rows, scanChange)
	if err == nil && standby.Warned(conn.Conn().PgConn()) {
		return Change{}, fmt.Errorf("%w: %w", idem.ErrUnavailable, errUnconfirmed)
	}
	return change, err
}

func querySettle(ctx context.Context, q rowsQuerier, s Settlement) (pgx.Rows, error) {
	switch {
	case s.Correct:
		return q.Query(ctx, admin.EffectCorrect, s.Scope, s.Key, s.Actor, s.Reason, []byte(s.Result), s.Calls)
	case s.As == StatusApplied:
		return q.Query(ctx, admin.EffectSettleApplied, s.Scope, s.Key, s.Actor, s.Reason, []byte(s.Result), s.Calls)
	}
	return q.Query(ctx, admin.EffectSettleAbsent, s.Scope, s.Key, s.Actor, s.Reason, s.Calls)
}

// unsettleable is why the effect may not be settled; nil if it may.
func (e Effect) unsettleable(s Settlement) error {
	switch {
	case s.Correct && e.Status != StatusApplied:
		return fmt.Errorf("%w: it is %s", ErrUncorrectable, e.Status)
	case !s.Correct && e.Settled():
		return fmt.Errorf("%w: it is %s", ErrSettled, e.Status)
	case s.Calls != 0 && s.Calls != e.Calls:
		return e.notOf(s.Calls)
	case s.Correct:
		return fmt.Errorf("%w: it is %s", ErrUncorrectable, e.Status)
	case e.Status == StatusStarted && e.Owned:
		return fmt.Errorf("%w: %s works on it; wait until it has ended", ErrEffectInFlight, e.Owner)
	case e.Calling && (e.Status == StatusStarted || s.As == StatusAbsent):
		return fmt.Errorf("%w until %s; ask the other side again after that", ErrCalling, e.CallUntil.UTC().Format(time.RFC3339))
	}
	return nil
}

// notOf is why evidence that is of another number of calls does not count.
func (e Effect) notOf(calls int) error {
	if e.Calls < calls {
		return fmt.Errorf("%w: it has %d, not %d; look again", ErrAnotherCall, e.Calls, calls)
	}
	return fmt.Errorf("%w: it has been called again: %d calls; look again, and ask the other side again", ErrAnotherCall, e.Calls)
}
