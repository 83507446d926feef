package queue

import (
	"context"
	"slices"
	"time"

	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
)

const (
	// gatherShare is the part of a lane's places, one in so many, that are given again at
	// once: what is started is noted for all of them by one statement.
	gatherShare = 4
	// gatherTime is how long the first of them waits for the others.
	gatherTime = 2 * time.Millisecond
)

// dispatch starts as many of the kept tasks as there is room for, once the database
// knows that they may have been started.
func (l *lane) dispatch(ctx context.Context) {
	l.launch(l.noted(min(l.free(), len(l.buffer))))
	n := min(l.free(), len(l.buffer))
	if n <= 0 || l.stuck || l.gathers(n) {
		return
	}
	ended, err := l.note(ctx, l.buffer[:n])
	switch {
	case err != nil:
		if ctx.Err() == nil {
			l.w.trouble(ctx, l.queue, "note what is started", err)
		}
		l.stuck = true
		l.clocks.note.Reset(notePause)
	case len(ended) > 0:
		l.withdraw(ended)
		l.dispatch(ctx) // of the others
	default:
		l.launch(n)
	}
}

// launch starts the first n of the kept tasks.
func (l *lane) launch(n int) {
	if n <= 0 {
		return
	}
	for _, t := range l.buffer[:n] {
		t.take.begun++
		l.start(t)
	}
	l.starts += n
	l.buffer = slices.Delete(l.buffer, 0, n)
}

// noted is how many of the first n kept tasks, one after the other, may be started as the
// database knows.
func (l *lane) noted(n int) int {
	begun := make(map[*take]int, 1)
	for i := range n {
		k := l.buffer[i].take
		if begun[k]++; k.begun+begun[k] > k.started {
			return i
		}
	}
	return max(n, 0)
}

// gathers reports whether n places that are free wait for more, while others are at work.
func (l *lane) gathers(n int) bool {
	switch {
	case n >= l.slots/gatherShare, len(l.running) == 0, l.gathered:
		l.gathering, l.gathered = false, false
		l.clocks.gather.Stop()
		return false
	case !l.gathering:
		l.gathering = true
		l.clocks.gather.Reset(gatherTime)
	}
	return true
}

// withdraw gives back the kept tasks of takes that were ended by others, for whom they
// were a dead worker's: most of them are another's by now.
func (l *lane) withdraw(ended []*take) {
	of := func(t *task) bool { return slices.Contains(ended, t.take) }
	var given []*task
	for _, t := range l.buffer {
		if of(t) {
			given = append(given, t)
		}
	}
	l.buffer = slices.DeleteFunc(l.buffer, of)
	l.giveBack(l.base, given)
	l.more = true
}

// note tells the database how many of each take's tasks may have been started by now. It
// returns the takes among them that were ended by others.
func (l *lane) note(ctx context.Context, starting []*task) (ended []*take, err error) {
	begun := make(map[*take]int)
	for _, t := range starting {
		begun[t.take]++
	}
	var late []*take
	for k, n := range begun {
		if k.begun+n > k.started {
			late = append(late, k)
		}
	}
	if len(late) == 0 {
		return nil, nil
	}
	fences, counts := make([]string, len(late)), make([]int32, len(late))
	for i, k := range late {
		fences[i], counts[i] = k.fence.String(), int32(k.begun+begun[k])
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	rows, err := l.w.db.Pool().Query(ctx, tasks.Start, l.queue, fences, counts)
	if err != nil {
		return nil, err
	}
	noted := make([]bool, len(late))
	var n, started int
	_, err = pgx.ForEachRow(rows, []any{&n, &started}, func() error {
		late[n-1].started, noted[n-1] = started, true
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, k := range late {
		if !noted[i] {
			ended = append(ended, k)
		}
	}
	return ended, nil
}
