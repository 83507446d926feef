package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/jackc/pgx/v5"
)

// Retry is what happens to a repeat of the same request with the same key.
type Retry string

// What a repeat meets.
const (
	RetryRuns     Retry = "runs"            // nothing stands in its way: it runs as new
	RetryWaits    Retry = "waits"           // one is running: it waits for that one's answer
	RetryReplayed Retry = "replayed"        // it gets the stored answer
	RetryWithheld Retry = "answer-withheld" // it is told that the answer was too large to store
	RetryExpired  Retry = "answer-expired"  // it is told that the answer's time is over
	RetryUnknown  Retry = "outcome-unknown" // it is told that the outcome is not known
	RetryGoesOn   Retry = "goes-on"         // it takes over an abandoned claim: what is applied is skipped
)

// Story is all that is known of one intent.
type Story struct {
	Scope, Key string
	// Remembered is the key's row, without header and body; nil if there is
	// none.
	Remembered *Key
	// Owner is who works on the key now; nil if nobody does, or if it is a request
	// on a lease that holds no transaction: Remembered says so, then.
	Owner *Owner
	// Tasks are those that the request has caused, and that they have, oldest first, at
	// most MaxLimit.
	Tasks []Task
	// Effects are those that the request or one of Tasks has caused, or was the last to
	// call, oldest first, at most MaxLimit of each, without results.
	Effects []Effect
	// Outcome is what became of the intent: of what the request wrote to the
	// database, of its tasks, and of its effects.
	Outcome Outcome
	// Retry is what a repeat with this key meets now.
	Retry Retry
	// NewKey reports whether another key can double nothing.
	NewKey bool
	// Audit is what was done by hand to the key, to its tasks and its effects, oldest first;
	// Action says to which.
	Audit []Change
}

// Why tells the story of one key as it is now. A key that is neither remembered
// nor in flight, that has no tasks or effects and that nobody has changed by hand, is
// ErrNotFound: it was never answered, or it was swept; a request with it runs as new.
// Whether a key is in flight is told by its claim on a lease, or by advisory locks, so
// a handler of a LazyClaim route that has not run a statement yet is not seen. It
// reads all effects.
//
// Errors: ErrNotFound, idem.ErrKeyInvalid, idem.ErrScopeInvalid,
// idem.ErrUnavailable.
func Why(ctx context.Context, db *idem.DB, scope, key string) (Story, error) {
	if err := errors.Join(idem.ValidScope(scope), idem.ValidKey(key)); err != nil {
		return Story{}, err
	}
	s := Story{Scope: scope, Key: key}
	// The owner first: if it ends now, what it leaves behind is read after it.
	running, err := owner(ctx, db.Pool(), scope, key)
	if err == nil {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		err = pgx.BeginTxFunc(ctx, db.Pool(), options, func(tx pgx.Tx) error { return s.read(ctx, tx) })
	}
	if err != nil {
		return Story{}, failure(ctx, "tell why", err)
	}
	s.judge(running)
	if s.Remembered == nil && s.Owner == nil && len(s.Tasks) == 0 && len(s.Effects) == 0 && len(s.Audit) == 0 {
		return Story{}, ErrNotFound
	}
	return s, nil
}

// read reads what is remembered and what was done by hand, in one snapshot.
func (s *Story) read(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, admin.KeyShow, s.Scope, s.Key)
	if err != nil {
		return err
	}
	k, err := pgx.CollectExactlyOneRow(rows, scanWholeKey)
	switch {
	case err == nil:
		k.Header, k.Body = nil, nil
		s.Remembered = &k
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	if s.Tasks, s.Effects, err = causedBy(ctx, tx, s.Scope, s.Key); err != nil {
		return err
	}
	s.Audit, err = changes(ctx, tx, s.Scope, s.Key, s.Tasks, s.Effects)
	return err
}

// causedBy are the tasks of a request's key, and its and their effects.
func causedBy(ctx context.Context, q rowsQuerier, scope, key string) ([]Task, []Effect, error) {
	tasks, err := tasksCaused(ctx, q, Intent{Door: "request", Scope: scope, Key: key})
	if err != nil {
		return nil, nil, err
	}
	effects, err := effectsOf(ctx, q, scope, key)
	if err != nil {
		return nil, nil, err
	}
	ofTasks, err := effectsOfTasks(ctx, q, tasks)
	return tasks, merged(effects, ofTasks), err
}

// merged are two lists of effects as one, each effect once, oldest first.
func merged(a, b []Effect) []Effect {
	for _, e := range b {
		if !slices.ContainsFunc(a, func(known Effect) bool { return known.Scope == e.Scope && known.Key == e.Key }) {
			a = append(a, e)
		}
	}
	slices.SortStableFunc(a, func(x, y Effect) int { return x.CreatedAt.Compare(y.CreatedAt) })
	return a
}

// effectsOf are the effects of a request's key.
func effectsOf(ctx context.Context, q rowsQuerier, scope, key string) ([]Effect, error) {
	rows, err := q.Query(ctx, admin.KeyEffects, scope, key, MaxLimit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEffect)
}

// judge is the one switch over what a key's state means. It judges as a claim
// does: what is remembered and not over counts, whoever holds the lock, since a
// repeat holds it while it reads.
func (s *Story) judge(running *Owner) {
	k := s.Remembered
	over := k == nil || k.Over
	claimed := !over && k.State == StateClaimed
	switch {
	case (over || claimed) && running != nil, claimed && k.Live:
		s.Owner, s.Retry = running, RetryWaits
	case over, claimed && !k.Bound:
		s.Retry = RetryRuns
	case claimed && s.doubtful():
		s.Retry = RetryUnknown
	case claimed:
		s.Retry = RetryGoesOn
	case k.State == StateUnknown:
		s.Retry = RetryUnknown
	case k.State == StateTombstone || k.Expired:
		s.Retry = RetryExpired
	case k.State == StateWithheld:
		s.Retry = RetryWithheld
	case k.State == StateAnswered:
		s.Retry = RetryReplayed
	default:
		panic(fmt.Sprintf("admin: a key is in a state that is not known: %q", k.State))
	}
	s.Outcome = s.outcome(claimed)
	s.NewKey = s.Outcome == OutcomeNotApplied
}

// outcome is what became of the whole intent: what is not over is not known, and
// neither is one of whose effects that is true; what an effect or a task has done is
// done, whatever became of the rows. A task that waits is no doubt about what the request
// itself has committed.
func (s *Story) outcome(claimed bool) Outcome {
	ofRequest := OutcomeUnknown
	if s.Remembered != nil {
		ofRequest = s.Remembered.Outcome
	}
	ofTasks := outcomeOfTasks(s.Tasks, s.Effects)
	switch {
	case claimed, s.Retry == RetryWaits, anyEffect(s.Effects, false):
		return OutcomeUnknown
	case ofRequest == OutcomeCommitted, ofTasks == OutcomeCommitted:
		return OutcomeCommitted
	case ofTasks == OutcomeUnknown:
		return OutcomeUnknown
	default:
		return ofRequest
	}
}

// doubtful reports whether an effect stands in the way of a retry: it is unknown, or
// its call was left and is not made again by itself. One that a task has called is the
// task's to repeat.
func (s *Story) doubtful() bool {
	return slices.ContainsFunc(s.Effects, func(e Effect) bool {
		if e.Owner.Door == "task" {
			return false
		}
		return e.Status == StatusUnknown || e.Status == StatusStarted && !e.Repeatable() && !e.Owned
	})
}

// Scopes returns the scopes that remember the key, in which it was changed by hand, or
// in which it has tasks or effects, in order, at most MaxLimit of them. It reads the whole
// index of keys, the tasks, the effects and the audit. None is no error. Errors: idem.ErrKeyInvalid, idem.ErrUnavailable.
func Scopes(ctx context.Context, db *idem.DB, key string) ([]string, error) {
	if err := idem.ValidKey(key); err != nil {
		return nil, err
	}
	rows, err := db.Pool().Query(ctx, admin.KeyScopes, key, MaxLimit)
	if err != nil {
		return nil, failure(ctx, "find a key's scopes", err)
	}
	scopes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return scopes, failure(ctx, "find a key's scopes", err)
}
