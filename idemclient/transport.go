package idemclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// Transport is an http.RoundTripper that sends every request of an intent with
// the intent's one key, and repeats it where its outcome is unknown or the answer
// asks for it. Make it with New. Safe for concurrent use.
type Transport struct {
	config Config
}

// New returns a transport, or all that is wrong with config.
func New(config Config) (*Transport, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Transport{config: config}, nil
}

// CloseIdleConnections does what it says for Config.Base, if that can.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// RoundTrip sends req under its intent's key until it has an answer to return, and
// within Config's limits and the request's context. It repeats after errors of the
// connection and attempts without an answer in time, after 425, 502, 503 and 504,
// after 429 with Retry-After, and where a problem says retryable; never after a
// problem that says otherwise, or a stored answer. An answer that may be asked for
// again is returned as it is when there is no room for another attempt; SentFrom
// tells so.
//
// The error is an *Error, unless req's method is not one of Config.Methods: then
// req is handed to Config.Base as it is. req is not modified.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !slices.Contains(t.config.Methods, req.Method) {
		return t.config.Base.RoundTrip(req)
	}
	end := time.Now().Add(t.config.Total)
	ctx, cancel := context.WithDeadline(req.Context(), end)
	defer cancel()
	key, value, err := t.key(ctx, req)
	if err != nil {
		closeBody(req)
		return nil, &Error{Key: key, Err: err}
	}
	body, err := t.payload(ctx, req)
	if err != nil {
		return nil, &Error{Key: key, Err: err}
	}
	d := &delivery{Transport: t, req: req, value: value, body: body, end: end, sent: &Sent{Key: key}}
	return d.run(ctx)
}

// delivery is one call of RoundTrip.
type delivery struct {
	*Transport
	req   *http.Request // the caller's, only read
	value string        // the header's
	body  payload
	end   time.Time
	sent  *Sent
}

// run makes attempts until one is to be returned. ctx is the request's, with the
// end of Total.
func (d *delivery) run(ctx context.Context) (*http.Response, error) {
	for {
		a, err := d.attempt()
		if err != nil {
			return nil, &Error{Key: d.sent.Key, Attempts: d.sent.Attempts, Err: err}
		}
		if !a.again(d.req) {
			return d.give(a)
		}
		wait, err := d.wait(ctx, a)
		if err != nil {
			d.sent.Stopped = err
			return d.give(a)
		}
		a.discard()
		if err := sleep(ctx, wait); err != nil {
			return nil, &Error{Key: d.sent.Key, Attempts: d.sent.Attempts, Err: err}
		}
	}
}

// give returns what an attempt brought.
func (d *delivery) give(a *attempt) (*http.Response, error) {
	if a.err == nil {
		return a.resp, nil
	}
	err := withoutURL(a.err)
	if d.sent.Stopped != nil {
		err = fmt.Errorf("%w: %w", d.sent.Stopped, err)
	}
	return nil, &Error{Key: d.sent.Key, Attempts: d.sent.Attempts, Err: err}
}

// wait is how long to wait before the attempt after a, or why there is none.
func (d *delivery) wait(ctx context.Context, a *attempt) (time.Duration, error) {
	if d.body.once {
		return 0, ErrBodyNotReplayable
	}
	if d.sent.Attempts >= d.config.Attempts {
		return 0, fmt.Errorf("%w: all %d were made", ErrExhausted, d.config.Attempts)
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	asked := a.retryAfter()
	wait := asked + d.config.backoff(d.sent.Attempts)
	if wait >= left && asked > 0 {
		wait = asked // on time is better than never
	}
	if wait >= left {
		return 0, fmt.Errorf("%w: the next would be in %v, and %v are left", ErrExhausted, wait, max(left, 0).Round(time.Millisecond))
	}
	return wait, nil
}

// backoff is a random wait after the n-th attempt ("full jitter"): clients that
// failed together do not come back together.
func (c Config) backoff(n int) time.Duration {
	bound := c.MinWait
	for i := 1; i < n && bound < c.MaxWait; i++ {
		bound *= 2
	}
	return rand.N(min(bound, c.MaxWait) + 1)
}

// sleep waits for d, or returns the context's error if it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
