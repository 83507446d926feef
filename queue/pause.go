package queue

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
)

// Pause makes every worker take nothing more from a queue; what is running goes on, and
// enqueueing, too. It reports whether the queue was not paused before. The error is, for
// errors.Is, ErrTaskInvalid or idem.ErrUnavailable. Safe for concurrent use.
func Pause(ctx context.Context, db *idem.DB, queue string) (paused bool, err error) {
	return setPaused(ctx, db, queue, tasks.Pause, "pause")
}

// Resume makes the workers take from a queue again, and reports whether it was paused. The
// error is as with Pause. Safe for concurrent use.
func Resume(ctx context.Context, db *idem.DB, queue string) (resumed bool, err error) {
	resumed, err = setPaused(ctx, db, queue, tasks.Resume, "resume")
	if resumed {
		Wake(ctx, db, queue)
	}
	return resumed, err
}

func setPaused(ctx context.Context, db *idem.DB, queue, sql, doing string) (bool, error) {
	if err := validName("the queue", queue); err != nil {
		return false, fmt.Errorf("%w: %w", ErrTaskInvalid, err)
	}
	tag, err := db.Pool().Exec(ctx, sql, queue)
	if err != nil {
		return false, unavailable(doing+" the queue "+queue, err)
	}
	return tag.RowsAffected() == 1, nil
}
