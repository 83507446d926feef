package storm

import (
	"context"
	"time"

	"github.com/idem-go/idem/internal/shop"
)

// taskPause spaces the looks at the tasks that are to come to their end.
const taskPause = 100 * time.Millisecond

// await waits until every task of the storm has come to an end, and settles meanwhile
// what no attempt can find out. What is left when the limit is over is in the proof.
func (o *operator) await(ctx context.Context, limit time.Duration) error {
	for began := time.Now(); ; {
		tasks, err := shop.TallyTasks(ctx, o.db.Pool(), o.first, o.last)
		if err != nil || tasks.Open == 0 || time.Since(began) > limit {
			return err
		}
		if err := o.settle(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(taskPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
