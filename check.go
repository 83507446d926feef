package idem

import (
	"context"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/idem-go/idem/internal/pgsql"
	"github.com/idem-go/idem/internal/pgsql/check"
	"github.com/jackc/pgx/v5"
)

// checkLimit bounds each statement of a check: it reads whole tables.
const checkLimit = 10 * time.Minute

// Violation is one broken invariant.
type Violation struct {
	Invariant string // its name, for example "key_fingerprint"
	Table     string // where the broken row is
	Row       string // what tells it from others: scope and key
	Detail    string // what is wrong with it, in words
}

// CheckFunc is an invariant of the program's own. It reads in Check's snapshot
// and returns what is broken.
type CheckFunc func(ctx context.Context, tx pgx.Tx) ([]Violation, error)

// Check yields every broken invariant of Idem's tables and then of
// Config.Checks, all read in one snapshot, so that it can run on a live system.
// It reads whole tables and writes nothing. An error, which wraps ErrUnavailable
// if it is Idem's, ends it. Safe for concurrent use.
func Check(ctx context.Context, db *DB) iter.Seq2[Violation, error] {
	return func(yield func(Violation, error) bool) {
		tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			yield(Violation{}, unavailable("check", err))
			return
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		limit := milliseconds(checkLimit)
		if err := setLimits(ctx, tx, limit, limit); err != nil {
			yield(Violation{}, unavailable("check", err))
			return
		}
		for _, invariant := range append(invariants(), db.config.Checks...) {
			broken, err := invariant(ctx, tx)
			if err != nil {
				yield(Violation{}, err)
				return
			}
			for _, v := range broken {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// invariants are Idem's own, one for each file of internal/pgsql/check.
func invariants() []CheckFunc {
	files, err := fs.Glob(check.Files, "*.sql")
	if err != nil {
		panic("idem: the embedded invariants cannot be listed: " + err.Error())
	}
	all := make([]CheckFunc, 0, len(files))
	for _, file := range files {
		sql, err := check.Files.ReadFile(file)
		if err != nil {
			panic("idem: an embedded invariant cannot be read: " + err.Error())
		}
		all = append(all, invariant(strings.TrimSuffix(file, ".sql"), pgsql.Statement(string(sql))))
	}
	return all
}

func invariant(name, statement string) CheckFunc {
	return func(ctx context.Context, tx pgx.Tx) ([]Violation, error) {
		rows, err := tx.Query(ctx, statement)
		if err != nil {
			return nil, unavailable("check "+name, err)
		}
		broken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Violation, error) {
			v := Violation{Invariant: name}
			err := row.Scan(&v.Table, &v.Row, &v.Detail)
			return v, err
		})
		if err != nil {
			return nil, unavailable("check "+name, err)
		}
		return broken, nil
	}
}
