package idem

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/pgsql/migrations"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is what all doors share. Its zero value works.
type Config struct {
	// Observe is told of every event, in the goroutine in which it happened, so
	// it must be quick and safe for concurrent use. Nil means silence, and costs
	// nothing; see LogEvents and package metrics. One that panics harms nobody: the event is lost, and the
	// first panic of a handle is written to slog's default logger.
	Observe func(context.Context, Event)
	// Tracer makes spans of what is done, and keeps the trace of a request with its
	// key and that of a task with the task. Package tracing has one for OpenTelemetry.
	// Nil makes none, and costs nothing.
	Tracer Tracer
	// Checks are the program's own invariants, run by Check beside Idem's in
	// the same snapshot.
	Checks []CheckFunc
}

// DB is one handle for every door, made by Open. It is safe for concurrent use.
type DB struct {
	pool     *pgxpool.Pool
	config   Config
	instance atomic.Pointer[uuid.UUID] // once it was read
	fallen   sync.Once                 // Config.Observe has panicked
}

// Open returns a handle on the database behind pool, which must have been
// migrated. It takes nothing over: the pool stays the caller's to close. The
// error is, for errors.Is, ErrUnavailable if the database cannot be reached,
// ErrNotMigrated, ErrSchemaNewer or ErrNotPrepared.
func Open(ctx context.Context, pool *pgxpool.Pool, config Config) (*DB, error) {
	have, err := SchemaVersion(ctx, pool)
	if err != nil {
		return nil, err
	}
	if want := newest(); have < want {
		return nil, fmt.Errorf("%w (it has version %d, this program needs %d)", ErrNotMigrated, have, want)
	} else if have > want {
		return nil, fmt.Errorf("%w (it has version %d, this program knows %d)", ErrSchemaNewer, have, want)
	}
	if err := seesStandbys(ctx, pool); err != nil {
		return nil, err
	}
	return &DB{pool: pool, config: config}, nil
}

// Prepare makes the connections of config tell Idem when a COMMIT did not wait
// for its synchronous standby, so that no answer is sent that a failover could
// lose. Call it before the pool is made, where the server has
// synchronous_standby_names set; elsewhere it changes nothing.
func Prepare(config *pgxpool.Config) { standby.Prepare(config) }

// seesStandbys refuses a pool that would not tell what Prepare is for.
func seesStandbys(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return unavailable("look at the server's standbys", err)
	}
	defer conn.Release()
	var waits bool
	if err := conn.QueryRow(ctx, sqltx.StandbyNames).Scan(&waits); err != nil {
		return unavailable("look at the server's standbys", err)
	}
	if waits && !standby.Watched(conn.Conn().PgConn()) {
		return ErrNotPrepared
	}
	return nil
}

// Pool is the pool that the handle was opened with.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Instance is the random id of the database, from which downstream keys are derived.
// It is for the doors. The error wraps ErrUnavailable.
func (db *DB) Instance(ctx context.Context) (uuid.UUID, error) {
	if id := db.instance.Load(); id != nil {
		return *id, nil
	}
	var id uuid.UUID
	if err := db.pool.QueryRow(ctx, effects.Instance).Scan(&id); err != nil {
		return id, unavailable("read the database's id", err)
	}
	db.instance.Store(&id)
	return id, nil
}

// Observe hands an event to Config.Observe, if there is one. It is for the
// doors.
func (db *DB) Observe(ctx context.Context, e Event) {
	if db.config.Observe == nil {
		return
	}
	defer db.forgive()
	db.config.Observe(ctx, e)
}

// forgive ends a panic of Config.Observe, which must not change what becomes of a
// request or a task. It is told once: one that panics at every event would fill the log.
func (db *DB) forgive() {
	v := recover()
	if v == nil {
		return
	}
	db.fallen.Do(func() {
		slog.Error("idem: Config.Observe panicked; the event is lost, and later panics of it are not told", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	})
}

// SchemaVersion is the number of the newest migration that the database has; 0
// if it has none. An error wraps ErrUnavailable.
func SchemaVersion(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	var version int
	err := pool.QueryRow(ctx, migrations.SchemaVersion).Scan(&version)
	switch sqlstate.Code(err) {
	case sqlstate.UndefinedTable, sqlstate.UndefinedSchema:
		return 0, nil
	}
	if err != nil {
		return 0, unavailable("read the schema's version", err)
	}
	return version, nil
}

// unavailable wraps what a database said, or failed to say. What asking again
// does not change (a missing right, say) is not called unavailable.
func unavailable(doing string, err error) error {
	if sqlstate.Permanent(err) {
		return fmt.Errorf("idem: %s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, doing, err)
}
