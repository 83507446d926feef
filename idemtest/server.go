package idemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"
)

const (
	// sendLimit bounds one request: longer than a handler's own limit, after
	// which the guard answers.
	sendLimit = 45 * time.Second
	// settleLimit bounds the wait for a definite answer. A key whose owner has
	// vanished is free within 35 s.
	settleLimit = time.Minute
	// settlePause is what is waited between two sends.
	settlePause = 20 * time.Millisecond
	// unknownSends is how often in a row an outcome must be unknown to be so for good:
	// evidence may be found meanwhile.
	unknownSends = 3
)

var errUnknown = errors.New("nobody knows whether the request was carried out")

// client sends one intent to a server.
type client struct {
	address string
	http    *http.Client
	request func() *http.Request
	last    *http.Request // what request returned before
	key     []string
	between func(context.Context) error // done before each send of settle; nil is nothing
}

// newClient sends what request returns to address. Connections are not kept:
// Go's transport would repeat a request with a key by itself on a broken one.
func newClient(address string, request func() *http.Request) *client {
	return &client{address: address, request: request, http: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// serve serves handler on a loopback port until end is called. Its panics are
// logged to log, or if that is nil as ever.
func serve(handler http.Handler, request func() *http.Request, log *log.Logger) (c *client, end func()) {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log
	server.Start()
	return newClient(strings.TrimPrefix(server.URL, "http://"), request), server.Close
}

// next is the request once more, ready to be sent.
func (c *client) next() (*http.Request, error) {
	r := c.request()
	if r == nil || r == c.last {
		return nil, errors.New("request returned no new request: it must make one each time, since a request is used up when it is sent")
	}
	key := r.Header.Values("Idempotency-Key")
	if c.last != nil && !slices.Equal(key, c.key) {
		return nil, fmt.Errorf("request made two intents, with the keys %q and %q: make the key once, outside of it", c.key, key)
	}
	c.last, c.key = r, key
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = "http", c.address
	out.GetBody = nil
	if out.Host == "" {
		out.Host = r.URL.Host
	}
	return out, nil
}

// transmit sends a request once.
func (c *client) transmit(ctx context.Context, r *http.Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	response, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		return Answer{}, fmt.Errorf("no answer (did the handler panic?): %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("no whole answer: %w", err)
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// send sends the intent once.
func (c *client) send(ctx context.Context) (Answer, error) {
	r, err := c.next()
	if err != nil {
		return Answer{}, err
	}
	return c.transmit(ctx, r)
}

// settle sends the intent until enough says that the answer will do.
func (c *client) settle(ctx context.Context, enough func(Answer, error) bool) (Answer, error) {
	deadline := time.NewTimer(settleLimit)
	defer deadline.Stop()
	for unknown := 0; ; {
		if c.between != nil {
			if err := c.between(ctx); err != nil {
				return Answer{}, err
			}
		}
		a, err := c.send(ctx)
		if unknown++; err != nil || !a.unsettled() {
			unknown = 0
		}
		switch {
		case unknown == unknownSends:
			return a, fmt.Errorf("%w: %v", errUnknown, a)
		case enough(a, err):
			return a, err
		}
		pause := time.NewTimer(settlePause)
		select {
		case <-pause.C:
		case <-deadline.C:
			pause.Stop()
			if err == nil {
				err = fmt.Errorf("no definite answer within %v; the last was %v", settleLimit, a)
			}
			return a, err
		case <-ctx.Done():
			pause.Stop()
			return a, errors.Join(ctx.Err(), err)
		}
	}
}
