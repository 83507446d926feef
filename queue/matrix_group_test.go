package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
)

const (
	// matrixPatience bounds every wait of the matrix.
	matrixPatience = 45 * time.Second
	// matrixLife bounds a process that is to be struck.
	matrixLife = 2 * time.Minute
	// matrixPause is how often is looked.
	matrixPause = 50 * time.Millisecond
)

// matrixGroup is one process that is struck, at one step and by one fault.
type matrixGroup struct {
	*matrix
	step   matrixStep
	fault  string
	cell   string
	orders matrixOrders
	fences []string // of what the process had when it was struck
	late   []string // what may be so since the machine was too busy, and is tried again

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	reached map[string]chan struct{} // by way
	gone    chan struct{}            // closed when it has ended
	killed  bool

	mu     sync.Mutex
	told   map[string][]string // by way: what its worker took the attempts to have come to
	last   string              // what it said last
	failed bool                // something is wrong that no busy machine can have done
}

func (m *matrix) newGroup(step matrixStep, fault string, round int) *matrixGroup {
	g := &matrixGroup{matrix: m, step: step, fault: fault, cell: fmt.Sprint(step.name, "/", strings.ReplaceAll(fault, " ", "-"), "/", round),
		reached: make(map[string]chan struct{}), gone: make(chan struct{}), told: make(map[string][]string)}
	g.orders = matrixOrders{Database: m.url, Bank: m.bank, Cell: g.cell, Step: step.name, Fault: fault}
	for _, way := range matrixWays {
		g.reached[way.name] = make(chan struct{})
	}
	return g
}

// errorf fails the cell, which is not tried again.
func (g *matrixGroup) errorf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = true
	g.t.Errorf("%s × %s: %s", g.step.name, g.fault, fmt.Sprintf(format, args...))
}

// latef notes what a busy machine may have done: limits of time were over, so that an attempt
// more was counted. What is so in every round is a fault.
func (g *matrixGroup) latef(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = append(g.late, fmt.Sprintf(format, args...))
}

// try brings the process to its step, strikes it, has another worker finish, and judges
// what has come of it.
func (g *matrixGroup) try(ctx context.Context) {
	if err := g.enqueue(ctx); err != nil {
		g.errorf("%v", err)
		return
	}
	if err := g.start(); err != nil {
		g.errorf("%v", err)
		return
	}
	visited := g.reach(ctx)
	g.strike()
	if err := g.outlive(ctx); err != nil {
		g.errorf("%v", err)
	}
	if err := g.succeed(ctx); err != nil {
		g.errorf("%v", err)
	}
	g.end()
	if visited {
		g.judge(ctx)
	}
}

// enqueue enqueues a victim for each way, and a neighbour behind it.
func (g *matrixGroup) enqueue(ctx context.Context) error {
	first := queue.MaxPriority
	for _, way := range matrixWays {
		_, err := matrixKind(g.orders, way).EnqueueMany(ctx, g.pool,
			queue.Task[matrixTask]{Key: victimKey, Payload: matrixTask{g.cell + "/" + way.name, true}, Priority: &first},
			queue.Task[matrixTask]{Key: neighbourKey, Payload: matrixTask{g.cell + "/" + way.name + "/neighbour", false}})
		if err != nil {
			return err
		}
	}
	return nil
}

// start starts the process.
func (g *matrixGroup) start() error {
	orders, err := json.Marshal(g.orders)
	if err != nil {
		return err
	}
	g.cmd = exec.Command(os.Args[0], "-test.run=^"+g.t.Name()+"$", "-test.count=1")
	g.cmd.Env = append(os.Environ(), matrixVariable+"="+string(orders))
	g.cmd.Stderr = os.Stderr
	if g.stdin, err = g.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	life := time.AfterFunc(matrixLife, func() { _ = g.cmd.Process.Kill() })
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			g.heard(lines.Text())
		}
		_ = g.cmd.Wait() // how it has ended is asked when it is told to
		life.Stop()
		close(g.gone)
	}()
	return nil
}

// heard takes in what the process says.
func (g *matrixGroup) heard(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = line
	words := strings.Fields(line)
	switch {
	case len(words) == 2 && words[0] == "reached" && g.reached[words[1]] != nil:
		close(g.reached[words[1]])
	case len(words) == 3 && words[0] == "told":
		g.told[words[1]] = append(g.told[words[1]], words[2])
	}
}

// reach waits until all sides have stopped, and looks at what is true there.
func (g *matrixGroup) reach(ctx context.Context) bool {
	var visited atomic.Int64
	var all sync.WaitGroup
	for _, way := range matrixWays {
		all.Go(func() {
			select {
			case <-g.reached[way.name]:
				visited.Add(1)
				g.look(ctx, way)
			case <-g.gone:
				g.errorf("%s: the process ended before the step", way.name)
			case <-time.After(matrixPatience):
				g.errorf("%s: the step was not reached", way.name)
			}
		})
	}
	all.Wait()
	return int(visited.Load()) == len(matrixWays)
}

// look compares what is true at the step with what must be.
func (g *matrixGroup) look(ctx context.Context, way matrixWay) {
	got, err := g.truth(ctx, way, victimKey)
	want := g.step.want[way.name]
	switch {
	case err == nil && way.off(got.matrixTruth, want):
		g.errorf("%s: at the step it is %v, want %v", way.name, got.matrixTruth, want)
	case err != nil || got.matrixTruth != want:
		g.latef("%s: at the step it is %v (%v), want %v", way.name, got.matrixTruth, err, want)
	}
}

// off reports whether rows or money are wrong, and not only late: there is more than the
// task may ever leave, or not what belongs to its status.
func (w matrixWay) off(got, want matrixTruth) bool {
	return got.rows > w.rows || got.charges > w.charges || got.status == want.status && got != want
}

func (g *matrixGroup) strike() {
	switch g.fault {
	case faultKill:
		g.killed = true
		_ = g.cmd.Process.Kill()
		<-g.gone
	case faultStop:
		g.signal(syscall.SIGSTOP)
	case faultCut:
		g.tell(matrixCut)
	case faultHole:
		g.tell(matrixHole)
	}
}

// outlive notes what the process has, unless it lives.
func (g *matrixGroup) outlive(ctx context.Context) error {
	if g.fault == faultCut {
		return nil
	}
	return g.pool.QueryRow(ctx, `select coalesce(array_agg(distinct fence::text), '{}') from idem.tasks
		where queue like $1 || '/%' and status = 'running'`, g.cell).Scan(&g.fences)
}

// lapse ends the leases of that. What a transaction holds stays until that is over.
func (g *matrixGroup) lapse(ctx context.Context) error {
	_, err := g.pool.Exec(ctx, `with held as (
			select id from idem.tasks where fence = any ($1::text[]::uuid[]) and status = 'running' and lease_until > clock_timestamp()
			for update skip locked
		), lapsed as (
			update idem.tasks set lease_until = clock_timestamp() where id in (select id from held)
		)
		update idem.takes set lease_until = clock_timestamp() where fence = any ($1::text[]::uuid[]) and lease_until > clock_timestamp()`, g.fences)
	return err
}

func (g *matrixGroup) signal(s os.Signal) {
	if err := g.cmd.Process.Signal(s); err != nil {
		g.errorf("%v: %v", s, err)
	}
}

// tell gives the process an order.
func (g *matrixGroup) tell(order string) {
	if _, err := io.WriteString(g.stdin, order+"\n"); err != nil {
		g.errorf("tell it to %s: %v", order, err)
	}
}

// succeed runs another worker until all tasks of the cell are finished.
func (g *matrixGroup) succeed(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := queue.NewWorker(g.db, queue.Config{Concurrency: 2, PollOnly: true, Poll: 200 * time.Millisecond})
	for _, way := range matrixWays {
		matrixHandlers{bank: g.bank, at: func(string, matrixTask) {}}.handle(w, g.orders, way)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	err := g.finished(ctx)
	cancel()
	return errors.Join(err, <-ended)
}

func (g *matrixGroup) finished(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, matrixPatience)
	defer cancel()
	tick := time.NewTicker(matrixPause)
	defer tick.Stop()
	for {
		var left string
		err := g.pool.QueryRow(ctx, `select coalesce(string_agg(format('%s %s: %s after %s attempts, last %s', kind, task_key, status, attempts, last_error), '; '), '')
			from idem.tasks where queue like $1 || '/%' and finished_at is null`, g.cell).Scan(&left)
		if err == nil && left == "" {
			return nil
		}
		if err == nil {
			err = g.lapse(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stuck: %s (%w)", left, errors.Join(ctx.Err(), err))
		}
	}
}

// end has the process go on, shut down, and end by itself.
func (g *matrixGroup) end() {
	if g.killed {
		return
	}
	if g.fault == faultStop {
		g.signal(syscall.SIGCONT)
		g.tell(matrixGo)
	}
	g.tell(matrixEnd)
	_ = g.stdin.Close()
	select {
	case <-g.gone:
	case <-time.After(matrixPatience):
		g.errorf("the process did not end; it said last: %s", g.last)
		_ = g.cmd.Process.Kill()
		<-g.gone
	}
	if state := g.cmd.ProcessState; !state.Success() || g.last != "ended" {
		g.errorf("the process ended with %v and said last: %s", state, g.last)
	}
}

// matrixOutcome is what is true in the end.
type matrixOutcome struct {
	matrixTruth
	attempts int
	doubtful int    // effects that are not applied
	errors   string // of its attempts
}

// judge compares what is true in the end with what must be.
func (g *matrixGroup) judge(ctx context.Context) {
	for _, way := range matrixWays {
		victim, err := g.truth(ctx, way, victimKey)
		neighbour, err2 := g.truth(ctx, way, neighbourKey)
		want := matrixTruth{"done", way.rows, way.charges}
		switch {
		case err != nil || err2 != nil:
			g.errorf("%s: %v", way.name, errors.Join(err, err2))
		case victim.matrixTruth != want || victim.doubtful > 0:
			g.errorf("%s: in the end it is %v with %d doubtful effects, want %v", way.name, victim, victim.doubtful, want)
		case neighbour.matrixTruth != want || neighbour.doubtful > 0:
			g.errorf("%s: in the end its neighbour is %v with %d doubtful effects, want %v", way.name, neighbour, neighbour.doubtful, want)
		case victim.attempts > 2:
			g.latef("%s: it took %d attempts, want at most one more than without a fault: %s", way.name, victim.attempts, victim.errors)
		case neighbour.attempts > g.mayTake(way):
			g.latef("%s: its neighbour took %d attempts, want %d: %s", way.name, neighbour.attempts, g.mayTake(way), neighbour.errors)
		}
		g.note(way, g, fmt.Sprintf("%s→%s/%d/%d/%d", g.heardOf(way), victim.status, victim.attempts, victim.rows, victim.charges))
	}
}

// mayTake is how many attempts the neighbour of a victim may have taken: one; or two where
// the victim's handler had returned, and it was running itself when its worker was struck.
func (g *matrixGroup) mayTake(way matrixWay) int {
	if way.name == onLeaseOnly && (g.step.name == "completion-sent" || g.step.name == "committed") {
		return 2
	}
	return 1
}

// heardOf is what the worker has told of its attempts.
func (g *matrixGroup) heardOf(way matrixWay) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.told[way.name]) == 0 {
		return "nothing"
	}
	return strings.Join(g.told[way.name], ",")
}

// truth is what is true of a task now.
func (g *matrixGroup) truth(ctx context.Context, way matrixWay, key string) (t matrixOutcome, err error) {
	name := g.cell + "/" + way.name
	if key == neighbourKey {
		name += "/neighbour"
	}
	err = g.pool.QueryRow(ctx, `select status, attempts,
			(select count(*) from matrix_rows where task = $3),
			(select count(*) from matrix_charges where task = $3),
			(select count(*) from idem.applied_effects where effect_key = 'charge:' || $3 and status <> 'applied'),
			coalesce(errors::text, '')
		from idem.tasks where queue = $1 and task_key = $2`, g.cell+"/"+way.name, key, name).
		Scan(&t.status, &t.attempts, &t.rows, &t.charges, &t.doubtful, &t.errors)
	return t, err
}

// open opens Idem for the workers that finish.
func (m *matrix) open(ctx context.Context) (err error) {
	m.db, err = idem.Open(ctx, m.pool, idem.Config{})
	return err
}
