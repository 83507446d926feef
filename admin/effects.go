package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/jackc/pgx/v5"
)

var (
	// ErrNoEffect reports that there is no such effect: it was never started.
	ErrNoEffect = errors.New("admin: there is no such effect")

	// ErrEffectKey reports what can not be the key of an effect.
	ErrEffectKey = errors.New("admin: invalid effect key")
)

// EffectFilter chooses effects. Its zero value is the newest DefaultLimit of all.
type EffectFilter struct {
	// Scope is whose effects; empty means everybody's.
	Scope string
	// Status is one of Statuses; empty means any.
	Status Status
	// Before is where the list begins; the zero Position is at the newest effect.
	// Position of the last effect of one page gives the next page.
	Before Position
	// Limit is how many effects at most. Zero means DefaultLimit; the maximum is
	// MaxLimit.
	Limit int
}

func (f EffectFilter) check() error {
	errs := []error{validLimit(f.Limit), validFilterScope(f.Scope)}
	if f.Status != "" && !slices.Contains(Statuses(), f.Status) {
		errs = append(errs, fmt.Errorf("%w: no status %q, there are %q", ErrFilter, f.Status, Statuses()))
	}
	return errors.Join(errs...)
}

// ListEffects returns the effects that filter chooses, newest first, without results.
// It reads the whole table. Errors: ErrFilter, idem.ErrUnavailable.
func ListEffects(ctx context.Context, db *idem.DB, filter EffectFilter) ([]Effect, error) {
	if err := filter.check(); err != nil {
		return nil, err
	}
	before, scope, key := filter.Before.parameters()
	rows, err := db.Pool().Query(ctx, admin.EffectsList,
		optional(filter.Scope), optional(string(filter.Status)), before, scope, key,
		cmp.Or(filter.Limit, DefaultLimit))
	if err != nil {
		return nil, failure(ctx, "list effects", err)
	}
	effects, err := pgx.CollectRows(rows, scanEffect)
	return effects, failure(ctx, "list effects", err)
}

// FindEffects returns the effects of one effect key or one downstream key in every
// scope, in the order of scopes, without results, at most MaxLimit of them. It reads
// the whole table. None is no error. Errors: ErrEffectKey, idem.ErrUnavailable.
func FindEffects(ctx context.Context, db *idem.DB, key string) ([]Effect, error) {
	if err := ValidEffectKey(key); err != nil {
		return nil, err
	}
	rows, err := db.Pool().Query(ctx, admin.EffectsFind, key, MaxLimit)
	if err != nil {
		return nil, failure(ctx, "find an effect", err)
	}
	effects, err := pgx.CollectRows(rows, scanEffect)
	return effects, failure(ctx, "find an effect", err)
}

// ShowEffect returns all that is known of one effect, with its result. Errors:
// ErrNoEffect, ErrEffectKey, idem.ErrScopeInvalid, idem.ErrUnavailable.
func ShowEffect(ctx context.Context, db *idem.DB, scope, key string) (Effect, error) {
	if err := errors.Join(idem.ValidScope(scope), ValidEffectKey(key)); err != nil {
		return Effect{}, err
	}
	e, err := showEffect(ctx, db.Pool(), scope, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return Effect{}, ErrNoEffect
	}
	return e, failure(ctx, "show an effect", err)
}

// rowsQuerier is a pool, a connection or a transaction.
type rowsQuerier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func showEffect(ctx context.Context, q rowsQuerier, scope, key string) (Effect, error) {
	rows, err := q.Query(ctx, admin.EffectShow, scope, key)
	if err != nil {
		return Effect{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanWholeEffect)
}

// ValidEffectKey reports whether key can be the key of an effect: 1 to
// idem.MaxEffectKey bytes of visible ASCII. The error wraps ErrEffectKey.
func ValidEffectKey(key string) error {
	if key == "" || len(key) > idem.MaxEffectKey {
		return fmt.Errorf("%w: it has %d bytes, 1 to %d are allowed", ErrEffectKey, len(key), idem.MaxEffectKey)
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return fmt.Errorf("%w: byte %d is not visible ASCII", ErrEffectKey, i+1)
		}
	}
	return nil
}
