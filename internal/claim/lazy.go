package claim

import (
	"context"
	"errors"
	"strings"

	"github.com/idem-go/idem"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
)

// lazy reports whether the claim may travel with the handler's first statement.
// Above read committed it may not, since the index has to be asked first.
func (in Intent) lazy() bool {
	return in.Lazy && in.Key != "" && (in.Isolation == "" || in.Isolation == pgx.ReadCommitted)
}

// travel sends a statement with a lazy claim, within a call. Without results it
// has still to be run.
func (s *session) travel(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	switch {
	case !s.lazy:
		return nil, nil
	case !travels(sql, args):
		return nil, s.alone(ctx)
	default:
		return s.first(ctx, func(b *pgx.Batch) { b.Queue(sql, args...) })
	}
}

// batchTravel is travel for a batch of the handler's.
func (s *session) batchTravel(ctx context.Context, b *pgx.Batch) (pgx.BatchResults, error) {
	switch {
	case !s.lazy:
		return nil, nil
	case !batchTravels(b):
		return nil, s.alone(ctx)
	default:
		return s.first(ctx, func(all *pgx.Batch) { all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...) })
	}
}

// first sends the claim with the handler's first statement, added to the batch
// by queue, in one round trip. It returns the batch's results, to be read from
// the handler's statement on and then closed, or nil if the statement has still
// to be run, in the transaction that is now open. The error is
// idem.ErrAnswered if the key is not this claim's.
func (s *session) first(ctx context.Context, queue func(*pgx.Batch)) (pgx.BatchResults, error) {
	c := s.claim
	if err := c.attach(ctx); err != nil {
		return nil, err
	}
	s.lazy = false
	b := c.opening()
	queue(b)
	results := s.conn.SendBatch(ctx, b)
	o, err := c.opened(results)
	if err == nil && o.claimed && o.found == nil {
		return results, c.judge(ctx, o)
	}
	_ = results.Close() // of a statement whose effect is dropped
	switch {
	case err == nil && (o.found == nil || !o.found.over):
		return nil, c.answered(ctx, c.judge(ctx, o))
	case c.detach():
		return s.first(ctx, queue)
	case s.conn.IsClosed():
		return nil, err
	default:
		// A statement that cannot be prepared, or a row whose time is over: what
		// was sent is undone, and the claim goes ahead of the statement.
		return nil, c.openAlone(ctx)
	}
}

// alone opens the transaction ahead of a statement that cannot travel with the
// claim.
func (s *session) alone(ctx context.Context) error {
	if err := s.claim.attach(ctx); err != nil {
		return err
	}
	s.lazy = false
	err := s.claim.openAlone(ctx)
	if err != nil && s.claim.detach() {
		return s.alone(ctx)
	}
	return err
}

func (c *Claim) openAlone(ctx context.Context) error {
	if c.session.conn.PgConn().TxStatus() != 'I' {
		if _, err := c.session.conn.Exec(ctx, sqltx.Rollback); err != nil {
			return err
		}
	}
	return c.answered(ctx, c.open(ctx))
}

// answered ends a lazy claim whose key turned out not to be its own.
func (c *Claim) answered(ctx context.Context, err error) error {
	if err != nil || c.Outcome == Fresh {
		return err
	}
	c.leave(ctx)
	c.session.answered.Store(true)
	return c.session.gone()
}

// gone is what every statement returns once the key turned out not to be the claim's.
func (s *session) gone() error {
	if s.claim.lease != nil {
		s.claim.lease.Lose()
		return idem.ErrLeaseLost
	}
	return idem.ErrAnswered
}

// conclude makes sure, before a claim ends, that the key has been asked for, and
// reports whether it was not this claim's after all.
func (c *Claim) conclude(ctx context.Context) (Result, bool) {
	s := c.session
	if s.lazy && c.lease == nil {
		if err := s.alone(ctx); err != nil && !errors.Is(err, idem.ErrAnswered) {
			return c.rolledBackAs(ctx, Unavailable, err), true
		}
	}
	if !s.answered.Load() {
		return Result{}, false
	}
	return c.concluded(), true
}

// concluded is the end of a lazy claim whose key was not its own.
func (c *Claim) concluded() Result {
	if c.lease != nil {
		return Result{Ending: LeaseLost}
	}
	if c.Outcome == InFlight {
		return Result{Ending: Contended}
	}
	return Result{Ending: Lost, Found: c.Found}
}

// travels reports whether a statement can be sent in one batch with the claim:
// not several at once, and none of pgx's options.
func travels(sql string, args []any) bool {
	if len(args) == 0 {
		return !several(sql)
	}
	switch args[0].(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		return false
	}
	return true
}

// batchTravels reports whether a batch of the handler's can be sent with the
// claim: not one that begins a transaction, which pgx refuses.
func batchTravels(b *pgx.Batch) bool {
	return len(b.QueuedQueries) > 0 && !strings.HasPrefix(strings.ToLower(b.QueuedQueries[0].SQL), "begin")
}
