package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

// matrixVariable makes this test binary the process that is struck: it is its matrixOrders.
const matrixVariable = "IDEM_TEST_MATRIX"

type matrixOrders struct {
	Database, Bank, Cell, Step, Fault string
}

// What a child is told, when all of its sides have stopped at the step; and then to end.
const (
	matrixGo   = "go"
	matrixCut  = "cut"  // the connection that the step is on; all of them, if it is a place
	matrixHole = "hole" // nothing passes any more, in no direction and without a word
	matrixEnd  = "end"  // what is dropped passes again, and the worker shuts down
)

// matrixChild is the process under test: a worker per way, each behind a proxy of its own,
// which stops at the step that it was given. It says
//
//	reached WAY         the step is reached
//	told WAY RESULT     what the worker takes an attempt at the victim to have come to
//
// and, on its last line, "ended" or why not.
type matrixChild struct {
	matrixOrders
	given chan struct{} // closed when the order is there
	order string
	sides []*matrixSide
}

// matrixSide is one worker.
type matrixSide struct {
	child *matrixChild
	way   matrixWay
	proxy *faultproxy.Postgres
	hole  *faultproxy.Armed
	taken atomic.Bool // it has stopped at its step
	pool  *pgxpool.Pool
}

// serveMatrix is the main of a matrixChild.
func serveMatrix(orders string) int {
	c := &matrixChild{given: make(chan struct{})}
	if err := json.Unmarshal([]byte(orders), &c.matrixOrders); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	for _, way := range matrixWays {
		s := &matrixSide{child: c, way: way}
		c.sides = append(c.sides, s)
		w, err := s.open(ctx)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		running.Go(func() {
			if err := w.Run(ctx); err != nil {
				fmt.Println(way.name, err)
			}
		})
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan() && in.Text() != matrixEnd; {
		c.obey(in.Text())
	}
	for _, s := range c.sides {
		if s.hole != nil {
			s.hole.Disarm()
			s.proxy.CutAll()
		}
	}
	cancel()
	running.Wait()
	for _, s := range c.sides {
		s.pool.Close()
	}
	fmt.Println("ended")
	return 0
}

// obey does what is to be done before anything goes on.
func (c *matrixChild) obey(order string) {
	if order == matrixHole {
		for _, s := range c.sides {
			s.hole = s.proxy.Add(faultproxy.Rule{Name: "hole", Times: -1, Do: faultproxy.Drop()})
		}
	}
	c.order = order
	close(c.given)
}

// stop says that the step is reached, if it is the child's, and waits for an order.
func (s *matrixSide) stop(step string) (order string) {
	if step != s.child.Step || s.taken.Swap(true) {
		return matrixGo
	}
	fmt.Println("reached", s.way.name)
	<-s.child.given
	return s.child.order
}

// open makes the worker, whose pool leads through the proxy.
func (s *matrixSide) open(ctx context.Context) (*queue.Worker, error) {
	var err error
	if s.proxy, err = faultproxy.NewPostgres(s.child.Database); err != nil {
		return nil, err
	}
	if s.pool, err = pgxpool.New(ctx, s.proxy.URL()); err != nil {
		return nil, err
	}
	db, err := idem.Open(ctx, s.pool, idem.Config{Observe: s.observe})
	if err != nil {
		return nil, err
	}
	for _, step := range matrixSteps {
		if step.name == s.child.Step && step.at != nil {
			go s.holds(s.proxy.Add(faultproxy.Rule{Name: step.name, When: step.at[s.way.name], Do: faultproxy.Hold()}))
		}
	}
	w := queue.NewWorker(db, queue.Config{Concurrency: 1, PollOnly: true})
	matrixHandlers{bank: s.child.Bank, at: s.at}.handle(w, s.child.matrixOrders, s.way)
	return w, nil
}

// holds stops at a message. In a hole it is held for ever.
func (s *matrixSide) holds(armed *faultproxy.Armed) {
	<-armed.Reached()
	switch s.stop(armed.Name()) {
	case matrixCut:
		armed.Cut()
	case matrixGo:
		armed.Release()
	}
}

// at stops in the handler of the victim. Where the step is a heartbeat, the handler waits
// for that, since there is none without.
func (s *matrixSide) at(place string, t matrixTask) {
	switch {
	case !t.Victim:
	case place == placeBegun && (s.child.Step == "heartbeat-sent" || s.child.Step == "heartbeat-committed"):
		<-s.child.given
	case s.stop(place) == matrixCut:
		s.proxy.CutAll()
	}
}

// observe tells how attempts have ended. The victim is the first task of its queue.
func (s *matrixSide) observe(_ context.Context, e idem.Event) {
	if e.Kind == idem.EventTask && e.Key == victimKey {
		fmt.Println("told", s.way.name, e.TaskResult)
	}
}

const (
	victimKey    = "victim"
	neighbourKey = "neighbour"
)
