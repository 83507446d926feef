package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/idem-go/idem/idemclient"
)

const (
	// attemptLimit is longer than a shop lets a duplicate wait.
	attemptLimit = 10 * time.Second
	// hangUpAfter is when an impatient client closes its connection: mostly
	// while its order is being made.
	hangUpAfter = 3 * time.Millisecond
	// maxAttempts only bounds attempts that fail at once; patience is what ends
	// the others.
	maxAttempts = 1_000
	// maxAnswer bounds the bytes of an answer.
	maxAnswer = 1 << 20
)

// clientOrders are the first line that a client process reads.
type clientOrders struct {
	URL      string        `json:"url"`      // of the gateway
	Patience time.Duration `json:"patience"` // how long one request is sent again
}

// clientReady is the first line that it writes.
type clientReady struct {
	Ready bool `json:"ready"`
}

// Client is the life of a client process: it sends the requests that it reads
// from in, many at a time, each until it has a definite answer or its patience
// ends, and writes the answers to out. It returns when in ends, as it does when
// the storm's own process is gone, or ctx does.
func Client(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, answers := json.NewDecoder(in), json.NewEncoder(out)
	var orders clientOrders
	if err := lines.Decode(&orders); err != nil {
		return fmt.Errorf("storm: a client process has to be told by a storm what to do: %w", err)
	}
	c, err := newClient(orders)
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	if err := answers.Encode(clientReady{true}); err != nil {
		return fmt.Errorf("storm: write to the storm: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var writing sync.Mutex
	read := requests(ctx, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case r, more := <-read:
			if !more {
				return nil
			}
			running.Go(func() {
				a := c.do(ctx, r)
				writing.Lock()
				defer writing.Unlock()
				_ = answers.Encode(a) // who does not read it is gone, and in has ended
			})
		}
	}
}

// requests are the lines of a client's input, until it or ctx ends. Its goroutine
// ends with the input.
func requests(ctx context.Context, lines *json.Decoder) <-chan request {
	read := make(chan request)
	go func() {
		defer close(read)
		for {
			var r request
			if lines.Decode(&r) != nil {
				return
			}
			select {
			case read <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	return read
}

// client sends requests as Idem's own transport does: one key over every repeat.
type client struct {
	http *http.Client
	url  string
}

func newClient(orders clientOrders) (*client, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: loopbackOnly}
	transport, err := idemclient.New(idemclient.Config{
		Base: &http.Transport{
			DialContext:         dialer.DialContext,
			MaxIdleConnsPerHost: DefaultClients,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
		Attempts:       maxAttempts,
		AttemptTimeout: attemptLimit,
		Total:          orders.Patience,
		MinWait:        5 * time.Millisecond,
		MaxWait:        500 * time.Millisecond,
		MaxAnswer:      maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	return &client{url: orders.URL, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// loopbackOnly refuses every other address after names have been resolved: a
// storm must not hit somebody's server.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("storm: %s is not a loopback address", address)
	}
	return nil
}

// do sends one request until it has an answer that is not "ask again later". An
// impatient client closes its connection, and that was all.
func (c *client) do(ctx context.Context, r request) answer {
	patience := r.Patience
	if r.HangUp {
		patience = hangUpAfter
	}
	if patience > 0 {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	a, err := c.send(ctx, r)
	if err != nil {
		return answer{ID: r.ID}
	}
	a.ID = r.ID
	return a
}

func (c *client) send(ctx context.Context, r request) (a answer, err error) {
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return a, err
	}
	out.Header.Set("Content-Type", "application/json")
	out.Header.Set("Idempotency-Key", r.Key)
	out.Header.Set("Authorization", "Bearer demo-"+r.Principal)
	w, err := c.http.Do(out)
	if err != nil {
		return a, err
	}
	sent, _ := idemclient.SentFrom(w)
	if problem, ok := idemclient.ProblemFrom(w); ok {
		a.Code = problem.Code
	}
	body, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	if err = errors.Join(err, w.Body.Close()); err != nil {
		return a, err
	}
	a.Status, a.Location, a.Body = w.StatusCode, w.Header.Get("Location"), string(body)
	a.Replayed, a.Definite = w.Header.Get("Idempotent-Replayed") == "true", sent.Stopped == nil
	return a, nil
}
