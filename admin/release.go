package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/internal/pgsql/keys"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// releaseTries and releasePause bound the wait for whoever works on the key:
	// one second, since a repeat of an answered key holds it for a moment only.
	releaseTries = 20
	releasePause = 50 * time.Millisecond
	// releaseLimit bounds each statement of a release, and its commit.
	releaseLimit = 10 * time.Second
)

// ErrRefused reports a change that would break a promise. What it wraps says why.
var ErrRefused = errors.New("admin: refused")

// Why a release is refused; each is an ErrRefused, too.
var (
	// ErrInFlight: a request with the key is running, or somebody else is
	// removing the key. Wait, and ask Why what came of it.
	ErrInFlight = fmt.Errorf("%w: the key is in flight", ErrRefused)
	// ErrCommitted: what the request wrote is committed; a second run would do
	// it again.
	ErrCommitted = fmt.Errorf("%w: what the request wrote is committed", ErrRefused)
	// ErrUndecided: whether anything was committed is not known, since the row
	// is unknown or an older program wrote it.
	ErrUndecided = fmt.Errorf("%w: whether the request committed anything is not known", ErrRefused)
	// ErrWithheld: the request was carried out, and its answer was too large to
	// store.
	ErrWithheld = fmt.Errorf("%w: the answer is withheld", ErrRefused)
	// ErrExpired: the answer's time is over; there is no refusal to release.
	ErrExpired = fmt.Errorf("%w: the answer's time is over", ErrRefused)
	// ErrEffects: an effect of the request has been applied, or may have been.
	ErrEffects = fmt.Errorf("%w: an effect of the request is not absent", ErrRefused)
	// ErrTasks: a task that the request has caused is done, or will run.
	ErrTasks = fmt.Errorf("%w: a task of the request is done, or will run", ErrRefused)
)

// errBusy asks for another try.
var errBusy = errors.New("somebody works on the key")

// Release names a key that is to be freed, who frees it, and why.
type Release struct {
	Scope, Key string
	// Actor and Reason are written down in the audit, for ever: 1 to MaxActor
	// and 1 to MaxReason bytes of UTF-8.
	Actor, Reason string
}

func (r Release) check() error {
	return errors.Join(idem.ValidScope(r.Scope), idem.ValidKey(r.Key), validAudit(r.Actor, r.Reason))
}

// ReleaseKey forgets a remembered refusal or an abandoned claim, so that the next
// request with the key runs as new, and writes down who did it and why in the same
// transaction. Only an answer whose request wrote nothing is released, and only a
// claim whose lease is over; and neither if an effect of the request, or of a task that it
// has caused, is anything but absent, nor if such a task is done or will run. An owner that comes back finds its claim lost. Of concurrent releases of
// one key one succeeds. It waits up to a second for a key in flight.
//
// Errors: ErrNotFound; ErrRefused with its reason ErrInFlight, ErrCommitted,
// ErrUndecided, ErrWithheld, ErrExpired, ErrEffects or ErrTasks; ErrAudit, idem.ErrKeyInvalid,
// idem.ErrScopeInvalid; idem.ErrUnavailable, after which Why tells whether the
// key was released.
func ReleaseKey(ctx context.Context, db *idem.DB, r Release) (Change, error) {
	if err := r.check(); err != nil {
		return Change{}, err
	}
	for try := 1; ; try++ {
		change, err := releaseOnce(ctx, db, r)
		if !errors.Is(err, errBusy) {
			return change, err
		}
		if try == releaseTries {
			return Change{}, ErrInFlight
		}
		select {
		case <-ctx.Done():
			return Change{}, failure(ctx, "release a key", ctx.Err())
		case <-time.After(releasePause):
		}
	}
}

func releaseOnce(ctx context.Context, db *idem.DB, r Release) (change Change, err error) {
	tx, err := db.Pool().BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return Change{}, failure(ctx, "release a key", err)
	}
	// What ends the transaction does not depend on the caller's patience.
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	defer func() { _ = tx.Rollback(endCtx) }()
	change, err = releaseWithin(ctx, tx, r)
	if err != nil {
		return Change{}, releaseFailure(ctx, err)
	}
	if err := tx.Commit(endCtx); err != nil {
		return Change{}, failure(ctx, "release a key (whether it was released is not known; idem why tells)", err)
	}
	return change, nil
}

// releaseWithin holds the row first: its fingerprint names the request's lock,
// which is taken ahead of the key's, so that no repeat takes the release for
// another request's owner. Nothing here waits for anybody.
func releaseWithin(ctx context.Context, tx pgx.Tx, r Release) (Change, error) {
	limit := strconv.FormatInt(releaseLimit.Milliseconds(), 10)
	if _, err := tx.Exec(ctx, sqltx.Limits, limit, limit, limit); err != nil {
		return Change{}, err
	}
	row, err := hold(ctx, tx, r.Scope, r.Key)
	if err != nil {
		return Change{}, err
	}
	tasks, effects, err := causedBy(ctx, tx, r.Scope, r.Key)
	if err != nil {
		return Change{}, err
	}
	if err := row.refusal(tasks, effects); err != nil {
		return Change{}, err
	}
	ofKey, ofRequest := claim.Locks(r.Scope, r.Key, row.fingerprint)
	var claimed *bool
	if err := tx.QueryRow(ctx, keys.Claim, ofKey, ofRequest, limit, limit, limit).Scan(&claimed, nil, nil, nil, nil); err != nil {
		return Change{}, err
	}
	if claimed == nil || !*claimed {
		return Change{}, errBusy
	}
	rows, err := tx.Query(ctx, admin.KeyRelease, r.Scope, r.Key, row.fence, r.Actor, r.Reason)
	if err != nil {
		return Change{}, err
	}
	change, err := pgx.CollectExactlyOneRow(rows, scanChange)
	if errors.Is(err, pgx.ErrNoRows) { // its time has just ended
		return Change{}, errBusy
	}
	return change, err
}

// held is the row that a release decides about.
type held struct {
	fence       uuid.UUID
	state       State
	fingerprint []byte
	committed   *bool
	expired     bool
	live, bound bool
}

// hold locks the key's row, or tells that there is none.
func hold(ctx context.Context, tx pgx.Tx, scope, key string) (held, error) {
	var h held
	err := tx.QueryRow(ctx, admin.KeyHold, scope, key).Scan(&h.fence, &h.state, &h.fingerprint, &h.committed, &h.expired, &h.live, &h.bound)
	if !errors.Is(err, pgx.ErrNoRows) {
		return h, err
	}
	running, err := owner(ctx, tx, scope, key)
	switch {
	case err != nil:
		return h, err
	case running != nil:
		return h, errBusy
	}
	return h, ErrNotFound
}

// refusal is why the row may not be released; nil if it may. While it is held no
// effect is added to those of its request.
func (h held) refusal(tasks []Task, effects []Effect) error {
	own := slices.ContainsFunc(effects, func(e Effect) bool { return e.Cause.Door == "request" || e.Owner.Door == "request" })
	kept := slices.ContainsFunc(effects, func(e Effect) bool { return e.Status != StatusAbsent })
	switch {
	case h.state == StateClaimed && h.live:
		return ErrInFlight
	case h.state == StateClaimed && (kept || h.bound && !own): // another key has called its effect since
		return ErrEffects
	case h.state == StateClaimed && outcomeOfTasks(tasks, nil) != OutcomeNotApplied:
		return ErrTasks
	case h.state == StateClaimed:
		return nil
	case h.state == StateUnknown:
		return ErrUndecided
	case h.state == StateTombstone || h.expired:
		return ErrExpired
	case h.state == StateWithheld:
		return ErrWithheld
	}
	switch outcome := outcomeOf(h.committed); {
	case outcome == OutcomeCommitted:
		return ErrCommitted
	case kept:
		return ErrEffects
	case outcomeOfTasks(tasks, nil) != OutcomeNotApplied:
		return ErrTasks
	case outcome == OutcomeNotApplied:
		return nil
	default:
		return ErrUndecided
	}
}

// releaseFailure tells what a release decided from what the database failed at.
func releaseFailure(ctx context.Context, err error) error {
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "55P03": // lock_not_available
		return errBusy
	case errors.Is(err, errBusy), errors.Is(err, ErrRefused), errors.Is(err, ErrNotFound):
		return err
	default:
		return failure(ctx, "release a key", err)
	}
}
