package main

import (
	"context"
	"errors"
	"time"
)

// killed kills a worker when it has done a third of its tasks, makes what it held
// available as time would, and has another worker do the rest.
func (b *bench) killed(ctx context.Context, s subject) ([]figures, error) {
	n := s.killedAmong(b.kill)
	if _, err := b.enqueue(ctx, s, order{Do: doMany, N: n}, many); err != nil {
		return nil, err
	}
	left := &Left{}
	if err := b.crash(ctx, s, n/3); err != nil {
		return nil, err
	}
	var err error
	if left.Applied, _, err = b.receipts(ctx); err != nil {
		return nil, err
	}
	if left.Stuck, err = b.storeOf(s).held(ctx); err != nil {
		return nil, err
	}
	if err := b.storeOf(s).release(ctx); err != nil {
		return nil, err
	}
	if left.Undone, err = b.recover(ctx, s); err != nil {
		return nil, err
	}
	rows, tasks, err := b.receipts(ctx)
	left.Twice, left.Lost = rows-tasks, n-left.Undone-tasks
	return []figures{{Subject: s.name, Phase: killed, Tasks: n, Left: left}}, err
}

// crash has a worker run n handlers, and kills it.
func (b *bench) crash(ctx context.Context, s subject, n int) error {
	worker, err := b.worker(s, true)
	if err != nil {
		return err
	}
	_, err = worker.tell(order{Do: doWork})
	if err == nil {
		_, err = worker.tell(order{Do: doAwait, N: n, Limit: int(b.limit.Milliseconds())})
	}
	worker.kill()
	return errors.Join(err, b.disconnected(ctx))
}

// recover has another worker do what is left, and returns how much it does not.
func (b *bench) recover(ctx context.Context, s subject) (undone int, err error) {
	worker, err := b.worker(s, true)
	if err != nil {
		return 0, err
	}
	defer worker.end()
	if _, err := worker.tell(order{Do: doWork}); err != nil {
		return 0, err
	}
	err = eventually(ctx, patience, func() (bool, error) {
		time.Sleep(50 * time.Millisecond) // it is the worker's CPU
		undone, err = b.storeOf(s).unfinished(ctx)
		return undone == 0, err
	})
	if err != nil && !errors.Is(err, errLate) {
		return 0, err
	}
	_, err = worker.tell(order{Do: doStop})
	return undone, err
}
