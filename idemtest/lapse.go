package idemtest

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/idem-go/idem/internal/pgsql"
)

const (
	// quietLimit is how long what still goes on after an answer is waited for: what
	// the server had been sent before a cut. Leases of those who go on are left alone.
	quietLimit = 5 * time.Second
	// quietPause is how often is asked.
	quietPause = 5 * time.Millisecond
)

//go:embed sql/quiet.sql
var quiet string

//go:embed sql/lapse.sql
var lapse string

//go:embed sql/sessions.sql
var sessions string

// lapse ends the leases of those who are dead, so that no repeat waits for them: a
// lease may be ten minutes long. It is called between requests, so that nobody holds
// one who lives, except for a handler that goes on after it was answered for. While
// anything goes on it waits, and then changes nothing: such a handler's repeats are in
// flight until it has ended.
func (l *life) lapse(ctx context.Context) error {
	if still, err := eventually(ctx, l.quiet); err != nil || !still {
		return err
	}
	if _, err := l.direct.Exec(ctx, pgsql.Statement(lapse)); err != nil {
		return fmt.Errorf("ending the leases of the dead: %w", err)
	}
	return nil
}

// quiet reports whether nothing goes on, in the database or outside.
func (l *life) quiet(ctx context.Context) (still bool, err error) {
	if l.outside != nil && l.outside.going.Load() > 0 {
		return false, nil
	}
	err = l.direct.QueryRow(ctx, pgsql.Statement(quiet)).Scan(&still)
	return still, err
}

// deserted waits until the test's are the only sessions in the database, or some time: a
// handler that goes on keeps its own.
func (l *life) deserted(ctx context.Context) error {
	_, err := eventually(ctx, func(ctx context.Context) (bool, error) {
		var all int32
		err := l.direct.QueryRow(ctx, pgsql.Statement(sessions)).Scan(&all)
		return all <= l.direct.Stat().TotalConns(), err
	})
	return err
}

// eventually asks until it is so, or for some time, and reports whether it is.
func eventually(ctx context.Context, so func(context.Context) (bool, error)) (bool, error) {
	limit := time.NewTimer(quietLimit)
	defer limit.Stop()
	tick := time.NewTicker(quietPause)
	defer tick.Stop()
	for {
		is, err := so(ctx)
		switch {
		case err != nil:
			return false, fmt.Errorf("whether anything goes on: %w", err)
		case is:
			return true, nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
