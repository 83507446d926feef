package idem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem/internal/pgsql/migrations"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// migrateLimit bounds the wait for another process that migrates, and each
// statement of a migration.
const migrateLimit = 5 * time.Minute

const (
	// migrateTries and migratePause bound how often a step is tried that could
	// not lock a table, and how long requests have it to themselves in between.
	migrateTries = 20
	migratePause = 2 * time.Second
)

// errTableBusy marks a step that could not lock a table which requests use. It
// does not wait for long, since they would wait behind it.
var errTableBusy = errors.New("a table is in use all the time; try again when less goes on")

// Migration is one step of the schema. Steps only go forward.
type Migration struct {
	Version int
	Name    string
	SQL     string // what another migrator may apply instead, whole
}

// Migrations returns all steps that this program knows, in order. Each one's SQL
// also writes down that it has been applied. Safe for concurrent use.
func Migrations() []Migration {
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		panic("idem: the embedded migrations cannot be listed: " + err.Error())
	}
	steps := make([]Migration, 0, len(files))
	for _, file := range files { // sorted by name
		number, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(steps)+1 {
			panic("idem: the embedded migrations are not numbered 1, 2, 3: " + file)
		}
		sql, err := migrations.Files.ReadFile(file)
		if err != nil {
			panic("idem: an embedded migration cannot be read: " + err.Error())
		}
		steps = append(steps, Migration{Version: version, Name: name, SQL: string(sql)})
	}
	return steps
}

func newest() int { return len(Migrations()) }

// Migrate brings the database's schema to this program's version and returns the
// steps that it applied, all in one transaction. It is safe to call from many
// processes at once and beside running requests: a step that cannot lock a table
// at once is tried again for about two minutes. The role needs the right to create
// the schema idem, and owns what is in it. The error is, for errors.Is,
// ErrSchemaNewer if a newer program has been here, or ErrUnavailable.
func Migrate(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	have, err := SchemaVersion(ctx, pool)
	if err != nil {
		return nil, err
	}
	if want := newest(); have == want {
		return nil, nil
	} else if have > want {
		return nil, fmt.Errorf("%w (it has version %d, this program knows %d)", ErrSchemaNewer, have, want)
	}
	applied, err := migrateOnce(ctx, pool)
	for try := 1; errors.Is(err, errTableBusy) && try < migrateTries; try++ {
		select {
		case <-ctx.Done():
			return nil, unavailable("migrate", ctx.Err())
		case <-time.After(migratePause):
		}
		applied, err = migrateOnce(ctx, pool)
	}
	switch {
	case errors.Is(err, ErrSchemaNewer):
		return nil, err
	case err != nil:
		return nil, unavailable("migrate", err)
	}
	return applied, nil
}

func migrateOnce(ctx context.Context, pool *pgxpool.Pool) (applied []Migration, err error) {
	err = pgx.BeginTxFunc(ctx, pool, readCommitted, func(tx pgx.Tx) error {
		applied, err = migrate(ctx, tx)
		return err
	})
	return applied, err
}

func migrate(ctx context.Context, tx pgx.Tx) ([]Migration, error) {
	limit := milliseconds(migrateLimit)
	if err := setLimits(ctx, tx, limit, limit); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, migrations.Lock); err != nil {
		return nil, err
	}
	have, err := versionWithin(ctx, tx) // another process may have been first
	if err != nil {
		return nil, err
	}
	steps := Migrations()
	if have > len(steps) {
		return nil, ErrSchemaNewer
	}
	for _, step := range steps[have:] {
		_, err := tx.Exec(ctx, step.SQL)
		if sqlstate.Code(err) == sqlstate.LockNotAvailable {
			err = fmt.Errorf("%w: %w", errTableBusy, err)
		}
		if err != nil {
			return nil, fmt.Errorf("migration %d (%s): %w", step.Version, step.Name, err)
		}
	}
	return steps[have:], nil
}

// versionWithin reads the version in a savepoint, since the table may not exist.
func versionWithin(ctx context.Context, tx pgx.Tx) (have int, err error) {
	err = pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
		return nested.QueryRow(ctx, migrations.SchemaVersion).Scan(&have)
	})
	if c := sqlstate.Code(err); c == sqlstate.UndefinedTable || c == sqlstate.UndefinedSchema {
		return 0, nil
	}
	return have, err
}
