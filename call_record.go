package idem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/sqlstate"
)

const (
	// recordLimit bounds the recording of what a call has come to, which goes on when
	// the handler's time is over.
	recordLimit = 10 * time.Second
	// recordPause spaces the tries of it.
	recordPause = 100 * time.Millisecond
	// maxLastError bounds what is kept of a failed call's error, in bytes.
	maxLastError = 500
)

// record records the result of a call.
func (c *calling) record(ctx context.Context, result []byte) error {
	switch written, err := c.write(ctx, effects.Record, result, applied); {
	case err != nil: // it is known here, and nowhere else
		return c.left(ctx, fmt.Errorf("the result could not be recorded: %w", err))
	case !written:
		return c.fenced(ctx)
	}
	tellEffect(ctx, c.event(EffectApplied, nil))
	return nil
}

// retract records the proof that a call has done nothing, and returns it.
func (c *calling) retract(ctx context.Context, proof error) error {
	switch written, err := c.write(ctx, effects.Retract, lastError(proof), absent); {
	case err != nil:
		return c.left(ctx, fmt.Errorf("%w; that could not be recorded: %w", proof, err))
	case !written:
		return errors.Join(c.fenced(ctx), proof)
	}
	c.retracted = true
	tellEffect(ctx, c.event(EffectAbsent, proof))
	return proof
}

// doubt records that the outcome of a call is unknown. Where even that fails, the next
// Call finds it out.
func (c *calling) doubt(ctx context.Context, cause error) error {
	switch written, err := c.write(ctx, effects.Doubt, lastError(cause), unknown); {
	case err != nil:
		cause = errors.Join(cause, err)
	case !written:
		return errors.Join(c.fenced(ctx), cause)
	}
	return c.unknown(ctx, cause)
}

// write records what a call has come to under the fence of the claim or the task, and
// tries until its time is over: nobody else knows it. It reports false if that is lost.
func (c *calling) write(ctx context.Context, sql string, what any, became status) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	for {
		written, err := c.writeOnce(ctx, sql, what, became)
		if err == nil || sqlstate.Permanent(err) {
			return written, err
		}
		select {
		case <-time.After(recordPause):
		case <-ctx.Done():
			return false, err
		}
	}
}

func (c *calling) writeOnce(ctx context.Context, sql string, what any, became status) (bool, error) {
	written, err := c.exec(ctx, sql, c.effect.Scope, c.effect.Key, c.x.Fence(), what, c.scope, c.key, c.number, c.door)
	if written || err != nil {
		return written, err
	}
	// Nothing was there to be written: by an earlier try, whose reply was lost?
	found, err := readEffect(ctx, c.x.Pool(), c.effect, asker{})
	return err == nil && found.status == became && found.calls == c.number && found.fence != nil && *found.fence == c.x.Fence(), err
}

// lastError is what an operator is shown of a failed call: text that PostgreSQL can
// store, and not too much of it.
func lastError(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "?"), "\x00", "?")
	if len(text) > maxLastError {
		text = strings.ToValidUTF8(text[:maxLastError], "") + "..."
	}
	return text
}
