package storm

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// progressEvery is how often progress is told.
const progressEvery = 250 * time.Millisecond

// job is a send to one endpoint.
type job struct {
	send
	rec      *record
	patience time.Duration // less than every client has; zero: as much
	decided  bool
}

// phase is how far a storm is.
type phase int

const (
	storming phase = iota
	asking         // it is over, and outcomes are asked for and settled
	ending         // every outcome has to be learnt
)

// driver hands jobs to the client processes, many at one time, and kills
// processes meanwhile.
type driver struct {
	crew     *crew
	shops    *shops
	bank     *Bank
	network  *network
	clients  int
	calm     bool // there is no trouble to begin and to end
	progress func(Progress)
	phase    phase

	// Of the one who hands out the jobs.
	strikes []strike // that are still to come
	begun   int      // jobs
	killed  int      // client processes

	mu   sync.Mutex
	p    Progress
	told time.Time
}

// drive sends jobs in their order and returns when all have ended.
func (d *driver) drive(ctx context.Context, jobs []*job) error {
	whole := ctx // what is started in a killed one's place outlives this wave
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue := make(chan *job)
	var running sync.WaitGroup
	for i := range min(d.clients, len(jobs)) {
		at := d.crew.seats[i%len(d.crew.seats)]
		running.Go(func() {
			for j := range queue {
				if err := d.do(ctx, at, j); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		d.strike(whole)
		queue <- j
	}
	close(queue)
	running.Wait()
	return context.Cause(ctx)
}

// do sends one job to its end.
func (d *driver) do(ctx context.Context, at *seat, j *job) error {
	if ctx.Err() != nil {
		return nil // why has been told
	}
	a, err := d.send(ctx, at, j)
	if err != nil {
		return err
	}
	j.decided = j.rec.note(j.send, a) || j.hangUp
	if d.phase == storming {
		j.rec.tried(j.send)
	}
	if !j.decided && d.phase != asking {
		j.rec.gaveUp(d.phase == ending)
	}
	d.tell()
	return nil
}

// send lets a client send, if it can by now. A mismatch is one only where the intent
// has its answer; before, it would be the first request, and right.
func (d *driver) send(ctx context.Context, at *seat, j *job) (answer, error) {
	if j.altered && !j.rec.answered(j.intent) {
		return answer{}, nil
	}
	body, ok := j.rec.body(j.send)
	if !ok {
		return answer{}, nil
	}
	in := j.rec.intents[j.intent]
	r := request{Path: j.rec.path, Key: in.key, Principal: in.principal, Body: body, HangUp: j.hangUp, Patience: j.patience}
	if j.quoted {
		r.Key = strconv.Quote(in.key)
	}
	return at.do(ctx, r)
}

// strike kills what is due. A shop that is still starting is not forgotten: it is
// killed as soon as it is up.
func (d *driver) strike(ctx context.Context) {
	d.begun++
	var later []strike
	for _, s := range d.strikes {
		if s.after >= d.begun || !d.kill(ctx, s) {
			later = append(later, s)
		}
	}
	d.strikes = later
}

func (d *driver) kill(ctx context.Context, s strike) bool {
	switch s.whom {
	case aShop:
		return d.shops.restart(ctx, s.index)
	case theBank:
		return d.bank.restart(ctx)
	}
	struck := d.crew.seats[s.index%len(d.crew.seats)].kill()
	if struck {
		d.killed++
	}
	return struck
}

// tell tells the progress now and then.
func (d *driver) tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.p.Done++
	if d.progress != nil && (d.p.Done == d.p.Planned || time.Since(d.told) >= progressEvery) {
		d.told = time.Now()
		d.p.Kills, d.p.BankKills, d.p.Cuts = d.shops.killed(), d.bank.killed(), d.network.counts().Cuts
		d.progress(d.p)
	}
}

// expect adds jobs to what is planned.
func (d *driver) expect(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.p.Planned += n
}
