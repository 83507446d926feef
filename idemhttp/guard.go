package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/execution"
)

// Guard guards routes that share a database and a scope function. It is made by
// New and is safe for concurrent use. In one process, requests under one key are
// told apart and run once only if they pass the same guard; across guards and
// processes the database decides.
type Guard struct {
	db        *idem.DB
	config    Config
	problems  map[string]problem
	replayed  headerList
	budget    *budget
	flights   *flights
	elsewhere *claim.Watch  // keys in flight in other processes
	leases    *claim.Leases // keys that this process works on, on a lease

	mu     sync.Mutex
	routes map[string]bool
}

// New returns a guard. The error reports every fault of config at once.
func New(db *idem.DB, config Config) (*Guard, error) {
	config, err := config.withDefaults()
	if db == nil {
		err = errors.Join(errors.New("idemhttp: New needs the handle that idem.Open returns"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Guard{
		db:        db,
		config:    config,
		problems:  problemTable(config.Profile),
		replayed:  newHeaderList(config.ReplayHeaders),
		budget:    newBudget(config.MaxBuffers),
		flights:   newFlights(config.MaxWaiters),
		elsewhere: claim.NewWatch(db.Pool()),
		leases:    claim.NewLeases(db.Pool()),
		routes:    make(map[string]bool),
	}, nil
}

// Route returns the middleware of one route. Middleware that is wrapped inside
// it runs only when the handler does. Route panics if rt is not valid or its
// name is taken, since both are mistakes of the program; requests never make it
// panic.
func (g *Guard) Route(rt Route) func(http.Handler) http.Handler {
	rt, err := rt.withDefaults(g.config)
	if err = errors.Join(err, g.name(rt.Name, err == nil)); err != nil {
		panic(err.Error())
	}
	g.db.Observe(context.Background(), idem.Event{Kind: idem.EventRoute, Route: rt.Name})
	return func(next http.Handler) http.Handler {
		return &guarded{Guard: g, route: rt, next: next}
	}
}

// name takes a route's name, if the route is valid, and reports one that is taken.
func (g *Guard) name(name string, valid bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.routes[name] {
		return fmt.Errorf("idemhttp: Route.Name %q is taken; names are unique within a guard", name)
	}
	if valid {
		g.routes[name] = true
	}
	return nil
}

var errNested = errors.New("idemhttp: a guarded handler runs inside another one; guard a request once")

// guarded is one handler behind its route's guard.
type guarded struct {
	*Guard
	route Route
	next  http.Handler
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(g.route.Methods, r.Method) {
		g.next.ServeHTTP(w, r)
		return
	}
	x := newExchange(g, w, r)
	defer x.release()
	x.observe(idem.Event{Kind: idem.EventStart})
	defer x.fell()
	x.begin()
	if _, nested := execution.From(r.Context()); nested {
		x.answer(failed(codeNotApplied, errNested)) // it would wait for itself
		return
	}
	x.answer(x.serve())
}
