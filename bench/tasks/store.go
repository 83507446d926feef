package main

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/idem-go/idem/bench/internal/machine"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

//go:embed sql
var statements embed.FS

// statement is the content of a file in sql/.
func statement(name string) string {
	content, err := statements.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is a part of this program
	}
	return string(content)
}

// store is where a subject keeps its tasks, as this program looks at it.
type store interface {
	empty(context.Context) error
	// analyze makes statistics of what waits, and leaves nothing to autovacuum.
	analyze(context.Context) error
	// unfinished is how many tasks are not done.
	unfinished(context.Context) (int, error)
	// held is how many of them a worker has taken.
	held(context.Context) (int, error)
	// release makes the leases of dead workers end, as time would.
	release(context.Context) error
}

// tables are a store in PostgreSQL.
type tables struct {
	pool *pgxpool.Pool
	dir  string
}

func (t tables) exec(ctx context.Context, name string) error {
	if _, err := t.pool.Exec(ctx, statement(t.dir+"/"+name)); err != nil {
		return fmt.Errorf("%s/%s: %w", t.dir, name, err)
	}
	return nil
}

func (t tables) count(ctx context.Context, name string) (n int, err error) {
	err = t.pool.QueryRow(ctx, statement(t.dir+"/"+name)).Scan(&n)
	return n, err
}

func (t tables) empty(ctx context.Context) error             { return t.exec(ctx, "empty") }
func (t tables) analyze(ctx context.Context) error           { return t.exec(ctx, "analyze") }
func (t tables) unfinished(ctx context.Context) (int, error) { return t.count(ctx, "unfinished") }
func (t tables) held(ctx context.Context) (int, error)       { return t.count(ctx, "held") }
func (t tables) release(ctx context.Context) error           { return t.exec(ctx, "release") }

// asynqKeys are asynq's tasks in Redis, by its names.
type asynqKeys struct{ redis *machine.Redis }

const asynqPrefix = "asynq:{default}:"

func (k asynqKeys) empty(ctx context.Context) error { return k.redis.Client.FlushDB(ctx).Err() }

func (k asynqKeys) analyze(context.Context) error { return nil }

func (k asynqKeys) unfinished(ctx context.Context) (int, error) {
	c := k.redis.Client
	pending, active := c.LLen(ctx, asynqPrefix+"pending"), c.LLen(ctx, asynqPrefix+"active")
	delayed, retried := c.ZCard(ctx, asynqPrefix+"scheduled"), c.ZCard(ctx, asynqPrefix+"retry")
	n := 0
	for _, counted := range []*redis.IntCmd{pending, active, delayed, retried} {
		if err := counted.Err(); err != nil {
			return 0, err
		}
		n += int(counted.Val())
	}
	return n, nil
}

func (k asynqKeys) held(ctx context.Context) (int, error) {
	n, err := k.redis.Client.LLen(ctx, asynqPrefix+"active").Result()
	return int(n), err
}

// release makes leases end a minute ago: asynq waits for 30 seconds more.
func (k asynqKeys) release(ctx context.Context) error {
	leases, err := k.redis.Client.ZRange(ctx, asynqPrefix+"lease", 0, -1).Result()
	if err != nil {
		return err
	}
	ended := float64(time.Now().Add(-time.Minute).Unix())
	for _, id := range leases {
		if err := k.redis.Client.ZAdd(ctx, asynqPrefix+"lease", redis.Z{Score: ended, Member: id}).Err(); err != nil {
			return fmt.Errorf("lease of %s: %w", strconv.Quote(id), err)
		}
	}
	return nil
}
