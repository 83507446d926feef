package queue

import (
	"context"
	"slices"

	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
)

// dispatch starts as many of the kept tasks as there is room for, once the database
// knows that they may have been started.
func (l *lane) dispatch(ctx context.Context) {
	n := min(l.free(), len(l.buffer))
	if n <= 0 || l.stuck {
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
		return
	case len(ended) > 0:
		l.withdraw(ended)
		l.dispatch(ctx) // of the others
		return
	}
	for _, t := range l.buffer[:n] {
		t.take.begun++
		l.start(t)
	}
	l.starts += n
	l.buffer = slices.Delete(l.buffer, 0, n)
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
