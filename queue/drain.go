package queue

import (
	"context"
	"time"

	"github.com/idem-go/idem/internal/pgsql/tasks"
)

const (
	// heedLimit is how long handlers whose contexts have ended are waited for, and their
	// ends to be recorded.
	heedLimit = 5 * time.Second
	// tryLimit bounds one try of a statement that is made again if it fails.
	tryLimit = 5 * time.Second
	// settlePause spaces the tries to give back what is not known to be taken.
	settlePause = 100 * time.Millisecond
)

// drain ends a lane: it gives back what it has not started, lets handlers end within the
// grace, and then ends their contexts, which gives their tasks back, too. What cannot be
// recorded even so is left to the end of the leases.
func (l *lane) drain(abandon context.CancelFunc) {
	l.giveBack(l.base, l.buffer)
	l.buffer = nil
	l.rest(l.w.grace())
	for a := range l.running {
		a.stop(ErrDraining)
	}
	l.rest(heedLimit)
	abandon()
	l.rest(commitLimit) // which bounds what they still do
	l.settle()
	l.trust()
}

// settle gives back what takes have taken whose reply was lost: it tries again, since the
// connections that the pool has kept may have died with theirs. No take is on its way any
// more: each has its limit, and the lane has waited for longer.
func (l *lane) settle() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.base), tryLimit)
	defer cancel()
	for len(l.lost) > 0 {
		undone, err := l.undo(ctx, l.w.db.Pool(), l.lost)
		if err != nil {
			l.w.trouble(ctx, l.queue, "give tasks back", err)
		}
		l.found(undone)
		if len(l.lost) > 0 && !pause(ctx, settlePause) {
			return
		}
	}
}

// rest waits for the running handlers, and the takes that are on their way, for as long as
// limit.
func (l *lane) rest(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for len(l.running) > 0 || l.fetches > 0 {
		select {
		case a := <-l.ended:
			l.end(a)
		case t := <-l.taken:
			l.received(t)
			l.giveBack(l.base, t.batch)
		case <-timer.C:
			return
		}
	}
}

// giveBack gives tasks back that were not started. Where that fails, the end of their
// leases does.
func (l *lane) giveBack(ctx context.Context, given []*task) {
	if len(given) == 0 {
		return
	}
	for _, t := range given {
		l.w.beat.release(t)
	}
	queues, ids, fences := columns(given)
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	if err := byIndex(ctx, l.w.db.Pool(), tasks.Return, []any{queues, ids, fences}, ignore); err != nil {
		l.w.trouble(ctx, l.queue, "give tasks back", err)
		l.w.beat.abandon(given...)
	}
	for _, t := range given {
		l.w.ends.close(t)
	}
}

// columns are tasks as a statement takes many.
func columns(all []*task) (queues []string, ids []int64, fences []string) {
	for _, t := range all {
		queues, ids, fences = append(queues, t.take.queue), append(ids, t.id), append(fences, t.take.fence.String())
	}
	return queues, ids, fences
}
