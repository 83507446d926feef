package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/tasks"
)

const (
	// rateTick is how often a busy lane looks at how fast its tasks end: what it keeps
	// beside those that run is as much as it starts in that time.
	rateTick = 100 * time.Millisecond
	// maxBuffer bounds what a lane keeps.
	maxBuffer = 1000
	// maxUnfinished bounds the tasks that have ended and are not finished in the database.
	maxUnfinished = 4000
	// lookShare is the part of the time, one in so many, that a lane spends on looking
	// from the beginning: between two such looks it looks behind what it has taken. That
	// keeps a take short when an old snapshot keeps what others have taken in the index.
	lookShare = 10
	// suspectTime is how long a task that was running when its worker died keeps others
	// like it from being started beside it.
	suspectTime = 10 * time.Second
	// notePause spaces the tries to note what is started, when the database is away.
	notePause = 500 * time.Millisecond
	// takePause is when a take that has failed is made again, at the latest. What was taken
	// by one whose reply was lost is given back then.
	takePause = time.Second
)

// lane takes the tasks of one queue and starts their handlers. All of its fields but
// those of the first two groups are its own goroutine's.
type lane struct {
	w      *Worker
	queue  string
	slots  int
	kinds  []string
	leases []float64

	wakes    chan struct{} // somebody says that there is something to take; holds one
	suspects chan struct{} // the same of tasks to be taken alone
	ended    chan *attempt // handlers that have returned
	taken    chan taken    // what a take has come to

	base      context.Context // of attempts; it ends when they are given up
	clocks    clocks
	buffer    []*task
	running   map[*attempt]struct{}
	behind    []place     // of each priority, what was taken last
	lost      []uuid.UUID // takes that have failed, and may have taken something
	fromStart bool        // the next take looks from the beginning
	starts    int         // since the last tick
	want      int         // how many to keep beside those that run
	fetches   int         // takes that are on their way
	taking    bool        // one of them is not of a task alone
	more      bool        // there may be something to take
	short     bool        // the last look found no more, and was not from the beginning
	stuck     bool        // what is started could not be noted
	askAlone  bool        // there may be a task to be taken alone
	awaited   bool        // the take of one is on its way
	holds     bool        // it keeps the worker from taking another task alone
	alone     *take       // for this one
}

// clocks are what a lane waits for beside its channels.
type clocks struct {
	poll *time.Timer  // when to look, though nobody has woken it
	look *time.Timer  // when to look from the beginning again
	calm *time.Timer  // when a task that runs alone is trusted
	note *time.Timer  // when to try again to note what is started
	tick *time.Ticker // see rateTick
}

func newClocks() clocks {
	return clocks{poll: time.NewTimer(0), look: idleTimer(), calm: idleTimer(), note: idleTimer(), tick: time.NewTicker(rateTick)}
}

// idleTimer is a timer that has still to be set.
func idleTimer() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}

func (c *clocks) stop() {
	for _, timer := range []*time.Timer{c.poll, c.look, c.calm, c.note} {
		timer.Stop()
	}
	c.tick.Stop()
}

// taken is what a take has come to.
type taken struct {
	take   *take
	batch  []*task
	full   bool
	spent  time.Duration
	age    time.Duration // of the leases, at most
	whole  bool          // it has looked from the beginning
	lost   bool          // it has failed, and may have taken something
	undone []uuid.UUID   // of lane.lost, those that are through with
	err    error
}

func newLane(w *Worker, queue string, slots int) *lane {
	return &lane{w: w, queue: queue, slots: slots, wakes: make(chan struct{}, 1), suspects: make(chan struct{}, 1),
		ended: make(chan *attempt, slots+2), taken: make(chan taken, 2), running: make(map[*attempt]struct{}),
		behind: fromFirst(), more: true, askAlone: true, fromStart: true}
}

func (l *lane) handles(h *handler) {
	l.kinds = append(l.kinds, h.kind)
	l.leases = append(l.leases, h.options.Lease.Seconds())
}

// wake says that there may be something to take.
func (l *lane) wake() { signal(l.wakes) }

// wakeAlone says that there may be something to take alone.
func (l *lane) wakeAlone() { signal(l.suspects) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run takes and starts until ctx ends, and then drains.
func (l *lane) run(ctx context.Context) {
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	l.base, l.clocks = base, newClocks()
	defer l.clocks.stop()
	for ctx.Err() == nil {
		l.askForSuspect(ctx) // ahead of the others, which may leave no room for it for long
		l.dispatch(ctx)
		l.ask(ctx)
		l.await(ctx)
	}
	l.drain(abandon)
}

// await waits for the next thing to happen.
func (l *lane) await(ctx context.Context) {
	select {
	case <-ctx.Done():
	case a := <-l.ended:
		l.end(a)
	case t := <-l.taken:
		l.receive(ctx, t)
	case <-l.wakes:
		l.more = true
	case <-l.suspects:
		l.askAlone = true
	case <-l.clocks.poll.C:
		l.more, l.askAlone = true, true
		l.clocks.poll.Reset(l.w.poll()/2 + rand.N(l.w.poll()/2+1)) // not in step with others
	case <-l.clocks.tick.C:
		l.want, l.starts = min(l.starts, maxBuffer), 0
	case <-l.clocks.look.C:
		l.fromStart = true
		l.more, l.short = l.more || l.short, false
	case <-l.clocks.calm.C:
		l.trust()
	case <-l.clocks.note.C:
		l.stuck = false
	}
}

// free is for how many tasks there is room. One to be taken alone has its place from when it
// is asked for.
func (l *lane) free() int {
	free := l.slots - len(l.running)
	if l.awaited {
		free--
	}
	return free
}

// askForSuspect begins the take of a task to be taken alone, if there is room and may be
// one.
func (l *lane) askForSuspect(ctx context.Context) {
	if l.askAlone && l.free() > 0 && l.w.suspect.CompareAndSwap(false, true) {
		l.askAlone, l.holds, l.awaited = false, true, true
		l.clocks.calm.Reset(suspectTime)
		l.fetch(ctx, tasks.TakeAlone, 1, 1, true)
	}
}

// ask begins a take if there is room and may be something to take.
func (l *lane) ask(ctx context.Context) {
	free := l.free()
	room := free + l.want - len(l.buffer)
	if !l.more || l.taking || room <= 0 || len(l.buffer) > (free+l.want)/2 || l.w.ends.unfinished() > maxUnfinished {
		return
	}
	l.more, l.taking = false, true
	l.fetch(ctx, tasks.Take, room, min(room, max(free-len(l.buffer), 0)), l.fromStart)
}

// fetch begins a take. The first of its tasks, as many as start, may be started at once.
func (l *lane) fetch(ctx context.Context, sql string, limit, start int, whole bool) {
	k := &take{fence: uuid.New(), queue: l.queue, alone: sql == tasks.TakeAlone, started: start}
	behind, lost := slices.Clone(l.behind), slices.Clone(l.lost)
	if whole {
		behind = fromFirst()
	}
	l.fetches++
	go func() {
		t := l.takes(ctx, sql, k, limit, behind, lost)
		t.whole = whole
		l.taken <- t
	}()
}

// receive is what a take has come to.
func (l *lane) receive(ctx context.Context, t taken) {
	l.received(t)
	if t.err != nil && ctx.Err() == nil {
		l.w.trouble(ctx, l.queue, "take tasks", t.err)
	}
	if t.err != nil || len(l.lost) > 0 {
		l.clocks.poll.Reset(min(l.w.poll(), takePause))
	}
	l.w.beat.hold(t.batch, t.age)
	switch {
	case t.take.alone && len(t.batch) == 0:
		l.trust()
	case t.take.alone:
		l.alone = t.take
		l.start(t.batch[0])
	case t.err == nil:
		l.saw(t)
		l.buffer = append(l.buffer, t.batch...)
	}
}

// received notes that a take is not on its way any more.
func (l *lane) received(t taken) {
	l.fetches--
	if t.take.alone {
		l.awaited = false
	} else {
		l.taking = false
	}
	l.found(t.undone)
	if t.lost {
		l.lost = append(l.lost, t.take.fence)
	}
}

// found notes that of these takes nothing is lost any more.
func (l *lane) found(takes []uuid.UUID) {
	l.lost = slices.DeleteFunc(l.lost, func(f uuid.UUID) bool { return slices.Contains(takes, f) })
}

// saw learns from what a take has found where and when to look next.
func (l *lane) saw(t taken) {
	if t.whole {
		l.fromStart = false
		l.clocks.look.Reset(t.spent * lookShare)
	}
	l.more, l.short = l.more || t.full, !t.full && !t.whole
	for _, task := range t.batch {
		l.behind[MaxPriority-int(task.priority)] = place{task.runAt, task.id}
	}
}

// trust lets other tasks be taken alone.
func (l *lane) trust() {
	if l.holds {
		l.holds, l.alone = false, nil
		l.w.suspect.Store(false)
	}
}

// start runs a task's handler.
func (l *lane) start(t *task) {
	a := newAttempt(l.base, l.w, t)
	l.running[a] = struct{}{}
	go func() {
		a.work(l.base)
		l.ended <- a
	}()
}

// end is called when a handler has returned, and sees to all that have meanwhile: what is
// started next is noted for all of them at once.
func (l *lane) end(a *attempt) {
	for {
		delete(l.running, a)
		if a.task.take.alone {
			l.askAlone = true
		}
		if a.task.take == l.alone {
			l.trust()
		}
		select {
		case a = <-l.ended:
		default:
			return
		}
	}
}
