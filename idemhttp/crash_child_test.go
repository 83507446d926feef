package idemhttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/jackc/pgx/v5/pgxpool"
)

// crashVariable makes this test binary the process that is crashed: it is its
// crashOrders.
const crashVariable = "IDEM_TEST_CRASH"

type crashOrders struct {
	Database string
	Bank     string // host:port
	Step     string
}

// What a child is told, once, when it has stopped at its step.
const (
	orderGo   = "go"
	orderCut  = "cut"  // the connection that the step is on
	orderHole = "hole" // the bank is not reached, until a caller has given it up
)

// crashChild is the process under test: a server per line-up, each behind faults of
// its own, which it stops at the step that it was given. It says
//
//	listens {line-up: address, …}
//	reached LINE-UP    the step is reached
//	arrived LINE-UP    as many requests have come as the line-up has
//
// and ends with its stdin.
type crashChild struct {
	crashOrders
	given chan struct{} // closed when the order is there
	order string
	sides []*crashSide
}

// crashSide is the server of one line-up.
type crashSide struct {
	lineup  crashLineup
	stop    *crashStop
	proxy   *faultproxy.Postgres // to the database
	hop     *bankHop
	bank    string // the hop's URL
	arrived atomic.Int64
	handler http.Handler
}

// crashStop is where a side stops, once.
type crashStop struct {
	child  *crashChild
	lineup string
	taken  atomic.Bool
}

// at says that the step is reached and waits for an order, if it is the child's.
func (s *crashStop) at(step string) (order string) {
	if step != s.child.Step || s.taken.Swap(true) {
		return orderGo
	}
	fmt.Println("reached", s.lineup)
	<-s.child.given
	return s.child.order
}

// serveCrash is the main of a crashChild.
func serveCrash(orders string) int {
	c := &crashChild{given: make(chan struct{})}
	if err := json.Unmarshal([]byte(orders), &c.crashOrders); err != nil {
		return fail(err)
	}
	listens := map[string]string{}
	for _, l := range crashLineups {
		addr, err := c.open(l)
		if err != nil {
			return fail(err)
		}
		listens[l.name] = addr
	}
	addresses, _ := json.Marshal(listens) // of strings
	fmt.Println("listens", string(addresses))
	in := bufio.NewScanner(os.Stdin)
	if in.Scan() {
		c.obey(in.Text())
	}
	for in.Scan() { // until the parent is gone
	}
	return 0
}

// obey does what is to be done before anything goes on.
func (c *crashChild) obey(order string) {
	for _, s := range c.sides {
		s.hop.hole.Store(order == orderHole)
	}
	c.order = order
	close(c.given)
}

// open starts the server of a line-up.
func (c *crashChild) open(l crashLineup) (addr string, err error) {
	s := &crashSide{lineup: l, stop: &crashStop{child: c, lineup: l.name}}
	c.sides = append(c.sides, s)
	s.hop = &bankHop{bank: c.Bank, stop: s.stop}
	if s.bank, err = serveHere(s.hop); err != nil {
		return "", err
	}
	if s.proxy, err = faultproxy.NewPostgres(c.Database); err != nil {
		return "", err
	}
	for _, step := range crashSteps {
		if step.name == c.Step && step.when != nil {
			go s.holds(s.proxy.Add(faultproxy.Rule{Name: step.name, When: step.when, Do: faultproxy.Hold()}))
		}
	}
	if err := s.guard(); err != nil {
		return "", err
	}
	url, err := serveHere(s)
	return strings.TrimPrefix(url, "http://"), err
}

// holds stops at a message.
func (s *crashSide) holds(armed *faultproxy.Armed) {
	<-armed.Reached()
	if s.stop.at(armed.Name()) == orderCut {
		armed.Cut()
		return
	}
	armed.Release()
}

// guard puts the cashier behind a guard whose pool leads through the proxy.
func (s *crashSide) guard() error {
	pool, err := pgxpool.New(context.Background(), s.proxy.URL())
	if err != nil {
		return err
	}
	db, err := idem.Open(context.Background(), pool, idem.Config{})
	if err != nil {
		return err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: bearer})
	if err != nil {
		return err
	}
	c := cashier{bank: func(payment) string { return s.bank }, at: s.at}
	s.handler = guard.Route(c.route(0))(c)
	return nil
}

// at stops in the handler. The handler has no connection of its own, so that a cut
// there is one of all that its pool has, the leases' too.
func (s *crashSide) at(step string) {
	if s.stop.at(step) == orderCut {
		s.proxy.CutAll()
	}
}

// ServeHTTP is the outside of the guard. What it has answered leaves when this
// returns.
func (s *crashSide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.arrived.Add(1) == int64(s.lineup.clients) {
		fmt.Println("arrived", s.lineup.name)
	}
	s.handler.ServeHTTP(w, r)
	if s.stop.at(stepAnswerSent) == orderCut {
		panic(http.ErrAbortHandler)
	}
}

// serveHere serves on a port of its own until the process ends, and returns the URL.
func serveHere(h http.Handler) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ErrorLog: discard}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), nil
}
