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

const (
	// DefaultLimit is how many keys or effects a list holds unless it is told otherwise: a
	// screenful.
	DefaultLimit = 50
	// MaxLimit is how many a list holds at most. More come in pages, so
	// that a list neither fills the memory nor keeps a snapshot for long.
	MaxLimit = 1000
)

var (
	// ErrNotFound reports that no such key is remembered.
	ErrNotFound = errors.New("admin: no such key is remembered")

	// ErrFilter reports a KeyFilter or an EffectFilter that contradicts itself or the limits.
	ErrFilter = errors.New("admin: invalid filter")
)

// KeyFilter chooses keys. Its zero value is the newest DefaultLimit of all.
type KeyFilter struct {
	// Scope is whose keys; empty means everybody's.
	Scope string
	// State is one of States; empty means any.
	State State
	// Before is where the list begins; the zero Position is at the newest key.
	// Position of the last key of one page gives the next page.
	Before Position
	// Limit is how many keys at most. Zero means DefaultLimit; the maximum is
	// MaxLimit.
	Limit int
}

func (f KeyFilter) check() error {
	errs := []error{validLimit(f.Limit), validFilterScope(f.Scope)}
	if f.State != "" && !slices.Contains(States(), f.State) {
		errs = append(errs, fmt.Errorf("%w: no state %q, there are %q", ErrFilter, f.State, States()))
	}
	return errors.Join(errs...)
}

func validLimit(limit int) error {
	if limit < 0 || limit > MaxLimit {
		return fmt.Errorf("%w: the limit is %d, it may be 1 to %d", ErrFilter, limit, MaxLimit)
	}
	return nil
}

// validFilterScope checks a scope that may be empty for everybody's.
func validFilterScope(scope string) error {
	if scope == "" {
		return nil
	}
	if err := idem.ValidScope(scope); err != nil {
		return fmt.Errorf("%w: %w", ErrFilter, err)
	}
	return nil
}

// ListKeys returns the keys that filter chooses, newest first, without headers
// and bodies. Keys whose time is over are among them until they are swept. It
// reads the whole table. Errors: ErrFilter, idem.ErrUnavailable.
func ListKeys(ctx context.Context, db *idem.DB, filter KeyFilter) ([]Key, error) {
	if err := filter.check(); err != nil {
		return nil, err
	}
	before, scope, key := filter.Before.parameters()
	rows, err := db.Pool().Query(ctx, admin.KeysList,
		optional(filter.Scope), optional(string(filter.State)), before, scope, key,
		cmp.Or(filter.Limit, DefaultLimit))
	if err != nil {
		return nil, failure(ctx, "list keys", err)
	}
	keys, err := pgx.CollectRows(rows, scanKey)
	return keys, failure(ctx, "list keys", err)
}

// FindKey returns the named key in every scope that remembers it, in the order
// of scopes, without headers and bodies, at most MaxLimit of them. It reads the
// whole index. None is no error. Errors: idem.ErrKeyInvalid,
// idem.ErrUnavailable.
func FindKey(ctx context.Context, db *idem.DB, key string) ([]Key, error) {
	if err := idem.ValidKey(key); err != nil {
		return nil, err
	}
	rows, err := db.Pool().Query(ctx, admin.KeysFind, key, MaxLimit)
	if err != nil {
		return nil, failure(ctx, "find a key", err)
	}
	keys, err := pgx.CollectRows(rows, scanKey)
	return keys, failure(ctx, "find a key", err)
}

// ShowKey returns all that is remembered of one key, with headers and body.
// Errors: ErrNotFound, idem.ErrKeyInvalid, idem.ErrScopeInvalid,
// idem.ErrUnavailable.
func ShowKey(ctx context.Context, db *idem.DB, scope, key string) (Key, error) {
	if err := errors.Join(idem.ValidScope(scope), idem.ValidKey(key)); err != nil {
		return Key{}, err
	}
	rows, err := db.Pool().Query(ctx, admin.KeyShow, scope, key)
	if err != nil {
		return Key{}, failure(ctx, "show a key", err)
	}
	k, err := pgx.CollectExactlyOneRow(rows, scanWholeKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return Key{}, ErrNotFound
	}
	return k, failure(ctx, "show a key", err)
}

// optional makes the empty string SQL's null.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
