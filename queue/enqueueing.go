package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// enqueueing is one call of EnqueueMany.
type enqueueing struct {
	db          Conn
	own         *pgconn.PgConn // on which each statement commits by itself; nil in a transaction
	queue, kind string
	retention   int
	asked       []stored
	same        func(remembered, declared []byte, asked stored) bool
	cause       [3]*string // door, scope and key
	origin      string     // the trace context in which it is called, if there is one

	left   []int            // which are still to be told, each key once
	others map[string][]int // of each key, which come behind the first
	told   []Enqueued
}

// enqueueTries bounds how often keys are asked for that are forgotten, or come up,
// while they are looked at.
const enqueueTries = 10

// on says where the statements run: on one connection of a pool, or on what the caller
// has given. It ends with release.
func (e *enqueueing) on(ctx context.Context, db Conn) (release func(), err error) {
	e.db, release = db, func() {}
	var conn *pgx.Conn
	switch at := db.(type) {
	case *pgxpool.Pool:
		acquired, err := at.Acquire(ctx)
		if err != nil {
			return nil, unavailable("enqueue "+e.kind, err)
		}
		e.db, conn, release = acquired, acquired.Conn(), acquired.Release
	case *pgxpool.Conn:
		conn = at.Conn()
	case *pgx.Conn:
		conn = at
	}
	if conn != nil && conn.PgConn().TxStatus() == 'I' {
		e.own = conn.PgConn()
		standby.Warned(e.own) // of what went before
	}
	return release, nil
}

// all enqueues what is new, and finds what is not.
func (e *enqueueing) all(ctx context.Context, db Conn) error {
	release, err := e.on(ctx, db)
	if err != nil {
		return err
	}
	defer release()
	e.group()
	for range enqueueTries {
		err := e.insert(ctx)
		if err == nil && len(e.left) > 0 {
			err = e.find(ctx)
		}
		switch {
		case err == nil && len(e.left) == 0:
			return nil
		case err != nil && (e.own == nil || !sqlstate.Rerunnable(err)):
			return err
		}
	}
	return fmt.Errorf("%w: enqueue %s: its keys come and go", idem.ErrUnavailable, e.kind)
}

// group leaves each key once: were the second one told by the database, the first might
// have been done and forgotten by then.
func (e *enqueueing) group() {
	e.left, e.others = make([]int, 0, len(e.asked)), make(map[string][]int)
	seen := make(map[string]bool, len(e.asked))
	for i, s := range e.asked {
		switch {
		case s.key == nil:
		case seen[*s.key]:
			e.others[*s.key] = append(e.others[*s.key], i)
			continue
		default:
			seen[*s.key] = true
		}
		e.left = append(e.left, i)
	}
}

// insert enqueues those that are left, and leaves those that are not new.
func (e *enqueueing) insert(ctx context.Context) error {
	rows, err := e.db.Query(ctx, tasks.Enqueue, e.columns()...)
	if err != nil {
		return unavailable("enqueue "+e.kind, err)
	}
	ids := make([]int64, len(e.left))
	var position int
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&position, &id}, func() error {
		ids[position-1] = id
		return nil
	})
	switch {
	case err != nil:
		return unavailable("enqueue "+e.kind, err)
	case id != 0 && e.own != nil && standby.Warned(e.own):
		return unavailable("enqueue "+e.kind, errUnconfirmed)
	}
	var rest []int
	for i, index := range e.left {
		if ids[i] == 0 {
			rest = append(rest, index)
			continue
		}
		e.told[index] = Enqueued{Outcome: New, ID: ids[i], Status: StatusPending}
		if s := e.asked[index]; s.key != nil {
			e.tell(found{key: *s.key, id: ids[i], status: StatusPending, kind: e.kind, payload: s.payload, fingerprint: s.fingerprint}, e.others[*s.key])
		}
	}
	e.left = rest
	return nil
}

// columns are the parameters of task_enqueue, for those that are left.
func (e *enqueueing) columns() []any {
	n := len(e.left)
	keys, payloads, prints := make([]*string, n), make([][]byte, n), make([][]byte, n)
	delays, dues := make([]*float64, n), make([]*time.Time, n)
	priorities, attempts := make([]int16, n), make([]int32, n)
	for i, index := range e.left {
		s := e.asked[index]
		keys[i], payloads[i], prints[i] = s.key, s.payload, s.fingerprint
		delays[i], dues[i], priorities[i], attempts[i] = s.delay, s.runAt, s.priority, s.maxAttempts
	}
	var patience, origin *string
	if e.origin != "" {
		origin = &e.origin
	}
	if e.own != nil {
		limit := milliseconds(lockLimit)
		patience = &limit
	}
	return []any{e.queue, e.kind, keys, payloads, prints, delays, dues, priorities, attempts,
		e.retention, e.cause[0], e.cause[1], e.cause[2], patience, origin}
}

// found is what a queue remembers of a key.
type found struct {
	key                  string
	id                   int64
	status               Status
	kind                 string
	payload, fingerprint []byte
	over                 bool
}

// find tells what is remembered of the keys that are left, and leaves those that are
// forgotten by now. One payload is held at a time.
func (e *enqueueing) find(ctx context.Context) error {
	keys, first := make([]string, len(e.left)), make(map[string]int, len(e.left))
	for i, index := range e.left {
		keys[i] = *e.asked[index].key
		first[keys[i]] = index
	}
	rows, err := e.db.Query(ctx, tasks.Find, e.queue, keys)
	if err != nil {
		return unavailable("look for the keys of "+e.kind, err)
	}
	var over []string
	var f found
	_, err = pgx.ForEachRow(rows, []any{&f.key, &f.id, &f.status, &f.kind, &f.payload, &f.fingerprint, &f.over}, func() error {
		if f.over {
			over = append(over, f.key)
			return nil
		}
		e.tell(f, append([]int{first[f.key]}, e.others[f.key]...))
		delete(first, f.key)
		return nil
	})
	if err != nil {
		return unavailable("look for the keys of "+e.kind, err)
	}
	var rest []int
	for i, index := range e.left {
		if _, forgotten := first[keys[i]]; forgotten {
			rest = append(rest, index)
		}
	}
	e.left = rest
	return e.expire(ctx, over)
}

// expire forgets tasks whose time is over.
func (e *enqueueing) expire(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	rows, err := e.db.Query(ctx, tasks.Expire, e.queue, keys)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		return unavailable("forget what has expired", err)
	}
	return nil
}

// tell compares the tasks at the given indexes with the one that has their key.
func (e *enqueueing) tell(f found, at []int) {
	for _, index := range at {
		told := Enqueued{Outcome: Duplicate, ID: f.id, Status: f.status}
		if f.kind != e.kind || !e.same(f.payload, f.fingerprint, e.asked[index]) {
			told.Outcome, told.Err = Mismatch, &MismatchError{Key: f.key, ID: f.id, Kind: f.kind, Status: f.status}
		}
		e.told[index] = told
	}
}

// fresh reports whether something is new and may be due.
func (e *enqueueing) fresh() bool {
	for i, t := range e.told {
		if t.Outcome == New && e.asked[i].delay == nil {
			return true
		}
	}
	return false
}

// unavailable wraps what a database said, or failed to say. What asking again does not
// change is not called unavailable, nor is what a transaction may be run again for, nor what
// the transaction itself has come to.
func unavailable(doing string, err error) error {
	ended := errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, idem.ErrAnswered) || errors.Is(err, idem.ErrLeaseLost)
	if ended || sqlstate.Permanent(err) || sqlstate.Rerunnable(err) {
		return fmt.Errorf("queue: %s: %w", doing, err)
	}
	return fmt.Errorf("%w: %s: %w", idem.ErrUnavailable, doing, err)
}
