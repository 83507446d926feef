package idemsql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/idem-go/idem/adapters/idemsql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// runner runs one statement.
type runner func(ctx context.Context, query string, args ...any) error

// door is a way to the guard's transaction: how a handler runs a statement
// there, alone, and how it does so in a transaction that it ends itself.
type door struct {
	run runner
	// within runs fn, and commits unless fn fails.
	within func(ctx context.Context, fn func(run runner) error) error
}

func exec(db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}) runner {
	return func(ctx context.Context, query string, args ...any) error {
		_, err := db.ExecContext(ctx, query, args...)
		return err
	}
}

func query(db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}) runner {
	return func(ctx context.Context, query string, args ...any) error {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return rows.Close()
	}
}

func prepared(db interface {
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}) runner {
	return func(ctx context.Context, query string, args ...any) error {
		s, err := db.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		if _, err = s.ExecContext(ctx, args...); err != nil {
			return err
		}
		return s.Close()
	}
}

// orm opens GORM on db.
func orm(t testing.TB, db gorm.ConnPool) *gorm.DB {
	t.Helper()
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{DisableAutomaticPing: true, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func ormRun(g *gorm.DB) runner {
	return func(ctx context.Context, query string, args ...any) error {
		return g.WithContext(ctx).Exec(query, args...).Error
	}
}

// doors are all ways in, on one *sql.DB.
func doors(t testing.TB) map[string]door {
	t.Helper()
	db := idemsql.Open()
	t.Cleanup(func() { _ = db.Close() })
	g := orm(t, db)
	inTx := func(run func(*sql.Tx) runner) runner {
		return func(ctx context.Context, query string, args ...any) error {
			tx, err := idemsql.Tx(ctx)
			if err != nil {
				return err
			}
			return run(tx)(ctx, query, args...)
		}
	}
	within := func(run func(*sql.Tx) runner) func(context.Context, func(runner) error) error {
		return func(ctx context.Context, fn func(runner) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := fn(run(tx)); err != nil {
				return err
			}
			return tx.Commit()
		}
	}
	return map[string]door{
		"Tx, Exec":    {inTx(func(tx *sql.Tx) runner { return exec(tx) }), within(func(tx *sql.Tx) runner { return exec(tx) })},
		"Tx, Query":   {inTx(func(tx *sql.Tx) runner { return query(tx) }), within(func(tx *sql.Tx) runner { return query(tx) })},
		"Tx, Prepare": {inTx(func(tx *sql.Tx) runner { return prepared(tx) }), within(func(tx *sql.Tx) runner { return prepared(tx) })},
		"DB, Exec":    {exec(db), within(func(tx *sql.Tx) runner { return exec(tx) })},
		"DB, Query":   {query(db), within(func(tx *sql.Tx) runner { return query(tx) })},
		"DB, Prepare": {prepared(db), within(func(tx *sql.Tx) runner { return prepared(tx) })},
		"GORM": {ormRun(g), func(ctx context.Context, fn func(runner) error) error {
			return g.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return fn(ormRun(tx)) })
		}},
		"GORM on Tx": {func(ctx context.Context, query string, args ...any) error {
			tx, err := idemsql.Tx(ctx)
			if err != nil {
				return err
			}
			return ormRun(orm(t, tx))(ctx, query, args...)
		}, func(ctx context.Context, fn func(runner) error) error {
			tx, err := idemsql.Tx(ctx)
			if err != nil {
				return err
			}
			return orm(t, tx).WithContext(ctx).Transaction(func(tx *gorm.DB) error { return fn(ormRun(tx)) })
		}},
	}
}

const insert = "insert into orders (amount) values ($1)"
