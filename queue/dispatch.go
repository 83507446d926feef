package queue

import (
	"context"
	"slices"

	"github.com/idem-go/idem/internal/pgsql/tasks"
)

// dispatch starts as many of the kept tasks as there is room for, once the database
// knows that they may have been started.
func (l *lane) dispatch(ctx context.Context) {
	n := min(l.free(), len(l.buffer))
	if n <= 0 || l.stuck {
		return
	}
	ready, err := l.note(ctx, l.buffer[:n])
	switch {
	case err != nil:
		if ctx.Err() == nil {
			l.w.trouble(ctx, l.queue, "note what is started", err)
		}
		l.stuck = true
		l.clocks.note.Reset(notePause)
		return
	case !ready:
		l.giveBack(l.base, l.buffer[:n]) // of what others have ended, nothing
		l.more = true
	default:
		for _, t := range l.buffer[:n] {
			t.take.begun++
			l.start(t)
		}
		l.starts += n
	}
	l.buffer = slices.Delete(l.buffer, 0, n)
}

// note tells the database how many of each take's tasks may have been started by now. It
// reports false if a take of them was ended by others.
func (l *lane) note(ctx context.Context, starting []*task) (bool, error) {
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
		return true, nil
	}
	fences, counts := make([]string, len(late)), make([]int32, len(late))
	for i, k := range late {
		fences[i], counts[i] = k.fence.String(), int32(k.begun+begun[k])
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	tag, err := l.w.db.Pool().Exec(ctx, tasks.Start, l.queue, fences, counts)
	if err != nil || tag.RowsAffected() != int64(len(late)) {
		return false, err
	}
	for i, k := range late {
		k.started = int(counts[i])
	}
	return true, nil
}
