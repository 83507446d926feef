package idemtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
)

// call is a request to the system outside, by its place in a run that can be
// repeated.
type call struct {
	method, path string
	nth          int // from 1, of those with this method and path
}

// String describes the call in one line.
func (c call) String() string {
	if c.nth == 1 {
		return fmt.Sprintf("%s %s", c.method, c.path)
	}
	return fmt.Sprintf("%s %s #%d", c.method, c.path, c.nth)
}

// fate is what a call meets.
type fate int

const (
	requestLost fate = iota + 1 // it never comes to the system
	replyLost                   // the system has done it, and nobody is told
	replyLast                   // the reply arrives, and then the connection ends
)

// String says what is cut.
func (f fate) String() string {
	switch f {
	case requestLost:
		return "lost"
	case replyLost:
		return "carried out and its reply lost"
	case replyLast:
		return "answered and its connection cut"
	default:
		return "untouched"
	}
}

// outside is Kill.Outside behind a broken network.
type outside struct {
	next   http.Handler
	server *httptest.Server
	over   chan struct{} // closed when its life is
	going  atomic.Int64  // calls

	mu    sync.Mutex
	nth   map[call]int // by method and path
	calls []call       // in the order of their arrival
	trap  *trapped
}

// trapped is a fate that waits for its call.
type trapped struct {
	callPoint
	held    bool // until the client is gone, instead of cut
	reached chan struct{}
}

// openOutside serves next until close is called.
func openOutside(next http.Handler) *outside {
	o := &outside{next: next, over: make(chan struct{})}
	o.begin(nil)
	o.server = httptest.NewUnstartedServer(o)
	o.server.Config.ErrorLog = log.New(io.Discard, "", 0) // cuts are panics
	o.server.Start()
	return o
}

func (o *outside) close() error {
	close(o.over)
	o.server.Close()
	return nil
}

// begin begins a run, in which t waits for its call.
func (o *outside) begin(t *trapped) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nth, o.calls, o.trap = map[call]int{}, nil, t
}

// run is what has been called since begin.
func (o *outside) run() []call {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// arrive notes a call, and returns the trap if it is the one that is waited for.
func (o *outside) arrive(r *http.Request) *trapped {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := call{method: r.Method, path: r.URL.Path}
	o.nth[c]++
	c.nth = o.nth[c]
	o.calls = append(o.calls, c)
	if t := o.trap; t != nil && t.call == c {
		o.trap = nil
		return t
	}
	return nil
}

// ServeHTTP lets a call through, or has it meet its fate.
func (o *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.going.Add(1)
	defer o.going.Add(-1)
	t := o.arrive(r)
	if t.is(requestLost) {
		_, _ = io.Copy(io.Discard, r.Body) // while it is read, nobody sees the client go
		o.spring(t, r)
	}
	reply := httptest.NewRecorder()
	o.next.ServeHTTP(reply, r)
	if t.is(replyLost) {
		o.spring(t, r)
	}
	if t.is(replyLast) {
		w.Header().Set("Connection", "close")
		defer close(t.reached)
	}
	maps.Copy(w.Header(), reply.Header())
	w.WriteHeader(reply.Code)
	_, _ = w.Write(reply.Body.Bytes())
}

// spring ends a call without a reply: its connection is cut, at once or when the
// client is dead.
func (o *outside) spring(t *trapped, r *http.Request) {
	close(t.reached)
	if t.held {
		select {
		case <-r.Context().Done():
		case <-o.over:
		}
	}
	panic(http.ErrAbortHandler)
}

func (t *trapped) is(f fate) bool { return t != nil && t.fate == f }

type outsideKey struct{}

func withOutside(ctx context.Context, url string) context.Context {
	return context.WithValue(ctx, outsideKey{}, url)
}

// OutsideURL is where the handler finds Kill.Outside, by the context that Kill.Handler,
// or Kill.Worker, is given: http://127.0.0.1 and a port. It panics where there is no Outside.
func OutsideURL(ctx context.Context) string {
	url, _ := ctx.Value(outsideKey{}).(string)
	if url == "" {
		panic("idemtest: OutsideURL needs Kill.Outside, and the context that Kill.Handler or Kill.Worker is given")
	}
	return url
}
