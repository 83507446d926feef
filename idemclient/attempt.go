package idemclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/idem-go/idem/internal/downstream"
)

const (
	// maxDrain is how much of an unwanted answer is read so that its connection
	// can be used again; a longer one costs more than a new connection.
	maxDrain = 64 << 10

	// drainTime bounds that reading.
	drainTime = time.Second
)

// attempt is one request handed to the base, and what came back: an answer or an
// error.
type attempt struct {
	resp    *http.Response
	err     error
	problem *Problem // nil: the answer is none
	cancel  context.CancelFunc
}

// attempt makes the next attempt. The error says why it could not be made.
func (d *delivery) attempt() (*attempt, error) {
	if err := d.req.Context().Err(); err != nil {
		d.abandon()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithValue(d.req.Context(), deliveryNote{}, d.sent))
	req := d.req.Clone(ctx)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header[d.config.Header] = []string{d.value}
	if t := downstream.TracerFrom(ctx); t != nil {
		for _, of := range []string{"Traceparent", "Tracestate"} { // of another span
			req.Header.Del(of)
		}
		t.Inject(ctx, req.Header.Set)
	}
	if err := d.body.put(req); err != nil {
		cancel()
		return nil, err
	}
	d.sent.Attempts++
	limit := min(d.config.AttemptTimeout, time.Until(d.end))
	timer := time.AfterFunc(limit, cancel)
	a := &attempt{cancel: cancel}
	whole := a.send(d.config, req)
	if !timer.Stop() && !whole && d.req.Context().Err() == nil {
		a.fail(fmt.Errorf("no answer within %v: %w", limit, os.ErrDeadlineExceeded))
	}
	a.hold(whole)
	return a, nil
}

// abandon closes a body that no attempt will send.
func (d *delivery) abandon() {
	if d.body.once {
		closeBody(d.req)
	}
}

// send hands req to the base and reads as much of the answer as has to be there.
// It reports whether that is all of it.
func (a *attempt) send(c Config, req *http.Request) (whole bool) {
	a.resp, a.err = c.Base.RoundTrip(req)
	if a.err != nil {
		return false
	}
	if a.resp.Request == nil {
		a.resp.Request = req
	}
	if a.resp.Body == nil { // no base should
		a.resp.Body = http.NoBody
	}
	if limit, ok := c.aheadLimit(a.resp); ok {
		var err error
		if _, whole, err = readAhead(a.resp, limit); err != nil {
			a.fail(fmt.Errorf("the answer was cut off: %w", err))
			return false
		}
		a.problem, _ = ProblemFrom(a.resp)
	}
	return whole
}

// aheadLimit is how much of an answer is read before it is returned, if anything.
// An answer of unknown length may be a stream.
func (c Config) aheadLimit(resp *http.Response) (int64, bool) {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return 0, false // its body is the connection
	case resp.ContentLength >= 0 && resp.ContentLength <= c.MaxAnswer:
		return c.MaxAnswer, true
	case isProblem(resp.Header):
		return maxProblem, true
	}
	return 0, false
}

// fail makes an error of whatever came.
func (a *attempt) fail(err error) {
	if a.resp != nil {
		_ = a.resp.Body.Close() // it is given up
	}
	a.resp, a.problem, a.err = nil, nil, err
}

// hold ties the attempt's context to the answer's body, unless nothing of it is
// still to come.
func (a *attempt) hold(whole bool) {
	if a.resp == nil || whole {
		a.cancel()
		return
	}
	if a.resp.StatusCode == http.StatusSwitchingProtocols {
		return // the connection is the caller's, for as long as its context lasts
	}
	a.resp.Body = &answerBody{ReadCloser: a.resp.Body, cancel: a.cancel}
}

// answerBody is an answer's body whose end is the end of its attempt.
type answerBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// discard frees the connection of an answer that nobody wants.
func (a *attempt) discard() {
	if a.resp == nil {
		return
	}
	timer := time.AfterFunc(drainTime, a.cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, a.resp.Body, maxDrain) // however it ends, the body is closed
	_ = a.resp.Body.Close()
}

// again reports whether the same request with the same key may bring more than
// this attempt did.
func (a *attempt) again(req *http.Request) bool {
	if a.err != nil {
		return req.Context().Err() == nil && !permanent(req, a.err)
	}
	status := a.resp.StatusCode
	if a.resp.Header.Get("Idempotent-Replayed") == "true" {
		return false // the stored answer is the intent's, whatever it says
	}
	if a.problem != nil && a.problem.retryableSaid {
		asks := status >= 400 || status == http.StatusAccepted && a.problem.Code == "in-flight"
		return a.problem.Retryable && asks
	}
	switch status {
	case http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusTooManyRequests:
		_, asked := retryAfter(a.resp.Header, time.Now())
		return asked
	}
	return false
}

// permanent reports errors that the next attempt would meet again.
func permanent(req *http.Request, err error) bool {
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError // https to a port that speaks http
	return req.URL == nil || req.URL.Host == "" || req.URL.Scheme == "" ||
		errors.As(err, &certificate) || errors.As(err, &notTLS)
}

func (a *attempt) retryAfter() time.Duration {
	if a.resp == nil {
		return 0
	}
	wait, _ := retryAfter(a.resp.Header, time.Now())
	return wait
}
