package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/jackc/pgx/v5"
)

const (
	// MaxActor is how long the name of an actor may be, in bytes.
	MaxActor = 255
	// MaxReason is how long a reason may be, in bytes: a paragraph.
	MaxReason = 1000
	// MaxAudit is how many lines of the audit a story holds, the newest: of its key, of
	// all its tasks, and of all its effects.
	MaxAudit = 1000
)

// ErrAudit reports a change without a proper actor or reason: nothing is changed
// by hand unless it is written down by whom and why.
var ErrAudit = errors.New("admin: a change needs an actor and a reason")

// Change is one line of the audit: what somebody changed by hand.
type Change struct {
	ID int64
	At time.Time // by the database's clock
	// Actor is who did it, as they said themselves.
	Actor string
	// Action is what was done: key_release, of the key of a request; effect_settle, of an
	// effect; task_retry, task_cancel or task_enqueue, of a task; queue_pause or
	// queue_resume.
	Action string
	// Scope and Key name what was changed: of a task its queue and its id, of a queue both
	// its name.
	Scope, Key string
	Reason     string
	// Detail is a JSON object that says what the subject was before, without
	// bodies.
	Detail json.RawMessage
}

// scanChange reads one row of a statement that makes or reads lines of the audit.
func scanChange(row pgx.CollectableRow) (Change, error) {
	var c Change
	var detail []byte
	err := row.Scan(&c.ID, &c.At, &c.Actor, &c.Action, &c.Scope, &c.Key, &c.Reason, &detail)
	c.Detail = detail
	return c, err
}

// changes are what was done by hand to a key, if there is one, to tasks and to effects,
// oldest first.
func changes(ctx context.Context, tx pgx.Tx, scope, key string, tasks []Task, effects []Effect) (all []Change, err error) {
	if key != "" {
		if all, err = lines(ctx, tx, admin.KeyAudit, scope, key); err != nil {
			return nil, err
		}
	}
	if len(tasks) > 0 {
		queues, ids := taskNames(tasks)
		ofTasks, err := lines(ctx, tx, admin.TaskAudit, queues, ids)
		if err != nil {
			return nil, err
		}
		all = append(all, ofTasks...)
	}
	if len(effects) > 0 {
		ofEffects, err := effectChanges(ctx, tx, effects)
		if err != nil {
			return nil, err
		}
		all = append(all, ofEffects...)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// lines reads lines of the audit of what is named by scopes and keys.
func lines(ctx context.Context, q rowsQuerier, sql string, scopes, keys any) ([]Change, error) {
	rows, err := q.Query(ctx, sql, scopes, keys, MaxAudit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanChange)
}

// EffectChanges returns what was done to one effect by hand, oldest first, at most
// MaxAudit lines. Errors: ErrEffectKey, idem.ErrScopeInvalid, idem.ErrUnavailable.
func EffectChanges(ctx context.Context, db *idem.DB, scope, key string) ([]Change, error) {
	if err := errors.Join(idem.ValidScope(scope), ValidEffectKey(key)); err != nil {
		return nil, err
	}
	changes, err := effectChanges(ctx, db.Pool(), []Effect{{Scope: scope, Key: key}})
	return changes, failure(ctx, "read the audit of an effect", err)
}

// effectChanges are what was done to effects by hand, oldest first.
func effectChanges(ctx context.Context, q rowsQuerier, effects []Effect) ([]Change, error) {
	scopes, keys := make([]string, len(effects)), make([]string, len(effects))
	for i, e := range effects {
		scopes[i], keys[i] = e.Scope, e.Key
	}
	return lines(ctx, q, admin.EffectAudit, scopes, keys)
}

// validAudit checks who and why before any database work.
func validAudit(actor, reason string) error {
	return errors.Join(validWords("actor", actor, MaxActor), validWords("reason", reason, MaxReason))
}

func validWords(what, text string, limit int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%w: the %s is empty", ErrAudit, what)
	case len(text) > limit:
		return fmt.Errorf("%w: the %s has %d bytes, at most %d are allowed", ErrAudit, what, len(text), limit)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%w: the %s is not text", ErrAudit, what)
	}
	return nil
}
