package storm

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// repeatShare is how many of the requests the gateway sends to a second shop,
	// too, as one does that has not heard from the first.
	repeatShare = 0.1
	// requestLimit is longer than a shop lets a duplicate wait.
	requestLimit = 20 * time.Second
	// maxRequest bounds the bytes of a request's body; the storm's have a hundred, but for
	// the one that is too large for a shop.
	maxRequest = 2 << 20
)

// gateway hands requests to shops and repeats some. Go's own transport below it
// repeats others, as it may with requests that carry a key, when a connection that
// was used before breaks. If a connection to a shop breaks under a request, so
// does the client's.
type gateway struct {
	seed      uint64
	shops     [shopCount]string
	transport *http.Transport
	calm      atomic.Bool // nothing is repeated on purpose

	copies   sync.WaitGroup // that nobody waits for
	mu       sync.Mutex
	arrived  uint64
	requests map[string]int // by path; with those repeated
	given    map[string]Given
	repeats  int
}

func newGateway(seed uint64, shops [shopCount]string) *gateway {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: loopbackOnly}
	return &gateway{seed: seed, shops: shops, requests: map[string]int{}, given: map[string]Given{}, transport: &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: DefaultClients, IdleConnTimeout: time.Minute, DisableCompression: true}}
}

// ServeHTTP implements http.Handler.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	random := g.arrive(r.URL.Path)
	first := random.IntN(shopCount)
	if random.Float64() < repeatShare && !g.calm.Load() {
		g.repeat(r, body, (first+1)%shopCount)
	}
	answer, content, err := g.forward(r.Context(), r, body, first)
	if err != nil {
		panic(http.ErrAbortHandler) // closes the client's connection
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(content) // a client that has gone is no news
}

// arrive counts a request and returns its chance.
func (g *gateway) arrive(path string) *rand.Rand {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	g.requests[path]++
	return rand.New(rand.NewPCG(g.seed, g.arrived))
}

// repeat sends a copy that nobody waits for.
func (g *gateway) repeat(r *http.Request, body []byte, to int) {
	g.noteRepeat(r.URL.Path)
	g.copies.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestLimit)
		defer cancel()
		_, _, _ = g.forward(ctx, r, body, to) // how it ends is nobody's news
	})
}

func (g *gateway) noteRepeat(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests[path]++
	g.repeats++
}

// forward sends a request to a shop and reads the whole answer.
func (g *gateway) forward(ctx context.Context, r *http.Request, body []byte, to int) (*http.Response, []byte, error) {
	connections := 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if connections++; connections > 1 {
			g.noteRepeat(r.URL.Path) // by the transport
		}
	}})
	out, err := http.NewRequestWithContext(ctx, r.Method, g.shops[to]+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	out.Header = r.Header.Clone()
	answer, err := g.transport.RoundTrip(out)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil {
		g.note(r.URL.Path, answer)
	}
	return answer, content, err
}

// note counts an answer that a shop gave, whoever still waits for it.
func (g *gateway) note(path string, answer *http.Response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	given := g.given[path]
	if given.Answers == nil {
		given.Answers = map[int]int{}
	}
	given.Answers[answer.StatusCode]++
	if answer.Header.Get("Idempotent-Replayed") == "true" {
		given.Replays++
	}
	g.given[path] = given
}

// gave is what shops have answered at a path. Call it when no request comes any more.
func (g *gateway) gave(path string) Given {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.given[path]
}

// at is how many requests there were at a path, with those repeated.
func (g *gateway) at(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests[path]
}

func (g *gateway) repeated() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.repeats
}

// close waits for the copies. Call it when no request comes any more.
func (g *gateway) close() {
	g.copies.Wait()
	g.transport.CloseIdleConnections()
}
