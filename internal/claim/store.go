package claim

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/keys"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// writes says what becomes of what the handler wrote. The row says so, too, since
// neither its status nor the route's policy tells it later.
type writes bool

const (
	kept    writes = true  // committed with the answer
	dropped writes = false // rolled back to the claim's savepoint
)

// prefix is the statement that goes ahead of the answer.
func (w writes) prefix() string {
	if w == kept {
		return sqltx.ReleaseSavepoint
	}
	return sqltx.RollbackToSavepoint
}

// store sends the prefix of w, the answer and COMMIT in one round trip. An error
// of one skips those after it.
func (c *Claim) store(ctx context.Context, w writes, a idem.Answer, withhold bool) Result {
	b := &pgx.Batch{}
	b.Queue(w.prefix())
	c.queueAnswer(b, w, a, withhold)
	b.Queue(sqltx.Commit)
	standby.Warned(c.session.conn.PgConn()) // of what went before
	results := c.session.conn.SendBatch(ctx, b)
	_, prefixErr := results.Exec()
	var answerErr error
	answered := true
	if c.intent.Key != "" {
		var answer pgconn.CommandTag
		answer, answerErr = results.Exec()
		answered = answer.RowsAffected() == 1
	}
	tag, commitErr := results.Exec()
	closeErr := results.Close()
	switch {
	case prefixErr != nil:
		return c.prefixFailed(ctx, prefixErr)
	case answerErr != nil:
		return c.answerFailed(ctx, answerErr)
	}
	r := c.committed(ctx, tag, errors.Join(commitErr, closeErr))
	if r.Ending == Remembered && !answered { // which the lock that is held on the row prevents
		return Result{Ending: Bound, Err: errUnanswered}
	}
	return r
}

var errUnanswered = errors.New("the transaction has committed without its answer: the key's row was not the claim's")

func (c *Claim) queueAnswer(b *pgx.Batch, w writes, a idem.Answer, withhold bool) {
	if c.intent.Key == "" {
		return
	}
	sql, args := c.answer(w, a, withhold)
	b.Queue(sql, args...)
}

// answer is the statement that remembers an answer, of the claim's own kind.
func (c *Claim) answer(w writes, a idem.Answer, withhold bool) (sql string, args []any) {
	in := c.intent
	// Of a uuid.UUID pgx would make a text, and read that, for 4 µs.
	args = []any{in.Scope, in.Key, pgtype.UUID{Bytes: c.fence, Valid: true}}
	if c.lease == nil {
		args = append(args, in.Fingerprint.Version, in.Fingerprint.Sum)
	}
	var tombstone *float64
	if in.Tombstone > 0 {
		seconds := in.Tombstone.Seconds()
		tombstone = &seconds
	}
	if withhold {
		args = append(args, a.Status, in.TTL.Seconds(), tombstone, bool(w))
		if c.lease != nil {
			return keys.CompleteWithheld, args
		}
		return keys.Withhold, append(args, in.By.Traceparent, in.By.ID)
	}
	var reference *string
	body := a.Body
	if a.Reference != "" {
		reference, body = &a.Reference, nil
	} else if body == nil {
		body = []byte{}
	}
	headers := make([][]byte, 0, 2*len(a.Header))
	for _, field := range a.Header {
		headers = append(headers, []byte(field.Name), []byte(field.Value))
	}
	args = append(args, a.Status, headers, body, reference, in.TTL.Seconds(), tombstone, bool(w))
	if c.lease != nil {
		return keys.Complete, args
	}
	return keys.Answer, append(args, in.By.Traceparent, in.By.ID)
}

// prefixFailed decides what it means that the claim's savepoint is not there, or
// could not be asked for.
func (c *Claim) prefixFailed(ctx context.Context, err error) Result {
	if sqlstate.Code(err) == sqlstate.NoSuchSavepoint {
		return c.replaced(ctx)
	}
	if sqlstate.Fatal(err) {
		return c.readBack(ctx, err)
	}
	return c.rolledBackAs(ctx, undone(err), err)
}

func (c *Claim) answerFailed(ctx context.Context, err error) Result {
	switch {
	case sqlstate.Fatal(err):
		return c.readBack(ctx, err)
	case firstWasOther(err):
		c.rollback(ctx)
		return c.lost(ctx, err)
	case sqlstate.Code(err) == sqlstate.LockNotAvailable: // another's answer is in the index, not committed yet
		return c.rolledBackAs(ctx, Contended, err)
	default:
		return c.rolledBackAs(ctx, undone(err), err)
	}
}

func (c *Claim) committed(ctx context.Context, tag pgconn.CommandTag, err error) Result {
	switch {
	case sqlstate.Fatal(err):
		return c.readBack(ctx, err)
	case err != nil:
		return c.rolledBackAs(ctx, undone(err), fmt.Errorf("%w: %w", errDeferred, err))
	case tag.String() != "COMMIT":
		return c.rolledBackAs(ctx, NotApplied, errAborted)
	case standby.Warned(c.session.conn.PgConn()):
		c.release()
		return Result{Ending: Unavailable, Err: errUnconfirmed}
	}
	c.release()
	return Result{Ending: Remembered}
}
