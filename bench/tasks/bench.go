package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/idem-go/idem/bench/internal/machine"
	"github.com/jackc/pgx/v5"
)

// bench is what a run has started.
type bench struct {
	settings
	program  string // this one
	postgres *machine.Postgres
	redis    *machine.Redis // nil if the machine has none
	node     *nodeProgram   // nil if the machine has none
	subjects []subject      // that can be run
}

// subjectName is the application_name of the subjects' connections.
const subjectName = "idem-bench-subject"

// start starts what the subjects need, and says which cannot be run, and why.
func (b *bench) start(ctx context.Context, all []subject, log io.Writer) (notRun []string, err error) {
	if b.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.postgres, err = machine.StartPostgres(ctx, log); err != nil {
		return nil, err
	}
	if _, err := b.postgres.Pool.Exec(ctx, statement("receipts"), pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, err
	}
	for _, s := range all {
		err := b.provide(ctx, s, log)
		if errors.Is(err, machine.ErrNoRedis) || errors.Is(err, errNoNpm) {
			notRun = append(notRun, fmt.Sprintf("%s: %v", s.name, err))
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := b.migrate(s); err != nil {
			return nil, err
		}
		b.subjects = append(b.subjects, s)
	}
	if len(b.subjects) == 0 {
		return nil, fmt.Errorf("no subject can be run: %s", strings.Join(notRun, "; "))
	}
	return notRun, nil
}

// provide starts what a subject needs besides PostgreSQL, if it is not there yet.
func (b *bench) provide(ctx context.Context, s subject, log io.Writer) (err error) {
	if s.redis && b.redis == nil {
		b.redis, err = machine.StartRedis(ctx)
	}
	if s.node && b.node == nil {
		b.node, err = installNode(ctx, b.packages, log)
	}
	return err
}

func (b *bench) migrate(s subject) error {
	p, err := b.client(s)
	if err != nil {
		return err
	}
	defer p.end()
	_, err = p.tell(order{Do: doMigrate})
	return err
}

// client starts a process of a subject that enqueues.
func (b *bench) client(s subject) (*process, error) {
	return b.process(s, place{Pool: atOnce})
}

// worker starts a process of a subject that works, once it is told to. Its handlers insert
// a receipt, or do nothing.
func (b *bench) worker(s subject, inserts bool) (*process, error) {
	return b.process(s, place{Pool: s.pool, Insert: inserts, Receipt: statement("receipt_insert")})
}

func (b *bench) process(s subject, p place) (*process, error) {
	p.Subject, p.Database = s.name, b.postgres.Server.URL()+"&application_name="+subjectName
	if b.redis != nil {
		p.Redis = b.redis.Addr
	}
	program, args := b.program, []string{processArgument}
	if s.node {
		program, args = b.node.node, []string{b.node.dir + "/main.mjs"}
	}
	started, err := startProcess(p, program, args...)
	if err != nil {
		return nil, err
	}
	if _, err := started.tell(order{Do: doReady}); err != nil {
		started.end()
		return nil, err
	}
	return started, nil
}

func (b *bench) storeOf(s subject) store {
	if s.redis {
		return asynqKeys{b.redis}
	}
	return tables{b.postgres.Pool, s.store}
}

// empty makes a measurement begin with empty tables, also of the other subjects, so that
// autovacuum has nothing to do.
func (b *bench) empty(ctx context.Context) error {
	if err := b.disconnected(ctx); err != nil {
		return fmt.Errorf("the subjects' connections end: %w", err)
	}
	for _, s := range b.subjects {
		if err := b.storeOf(s).empty(ctx); err != nil {
			return err
		}
	}
	if _, err := b.postgres.Pool.Exec(ctx, statement("receipts_empty")); err != nil {
		return err
	}
	_, err := b.postgres.Pool.Exec(ctx, statement("checkpoint"))
	return err
}

// receipts is how many there are, and of how many tasks.
func (b *bench) receipts(ctx context.Context) (rows, tasks int, err error) {
	err = b.postgres.Pool.QueryRow(ctx, statement("receipts_count")).Scan(&rows, &tasks)
	return rows, tasks, err
}

// disconnected waits until the subjects have no connection: what a process that has ended
// or was killed has sent is done by then, or is not.
func (b *bench) disconnected(ctx context.Context) error {
	return eventually(ctx, startLimit, func() (bool, error) {
		n := 0
		err := b.postgres.Pool.QueryRow(ctx, statement("connections"), subjectName).Scan(&n)
		return n == 0, err
	})
}

// errLate says that something has not come to be in time.
var errLate = errors.New("not within its time")

// eventually asks until the answer is true, an error, or late.
func eventually(ctx context.Context, limit time.Duration, ask func() (bool, error)) error {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if is, err := ask(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return errLate
}

func (b *bench) stop() error {
	var errs []error
	if b.redis != nil {
		b.redis.Stop()
	}
	if b.node != nil {
		errs = append(errs, b.node.remove())
	}
	if b.postgres != nil {
		errs = append(errs, b.postgres.Close())
	}
	return errors.Join(errs...)
}
