package idemtest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// Repeat sends one request n times to handler, which is a guarded route or has
// one behind it: most of them at once, the rest one after the other when those
// have been answered, over a real server. It fails t unless all get the same
// answer (status, body and the headers that are replayed) and exactly one of
// them is not a replay, so that the handler ran once. It returns that answer.
//
// request makes the request anew each time, as httptest.NewRequest or
// http.NewRequest do, always with the same Idempotency-Key, which no request had
// before. The answer must be one that is remembered: by default 2xx, 3xx, 402, 409
// and 410. n is from 2 to 1,000. A request that is told to come again, since the
// first is still running, does.
func Repeat(t testing.TB, handler http.Handler, request func() *http.Request, n int) Answer {
	t.Helper()
	if n < 2 || n > 1000 {
		t.Fatalf("idemtest: Repeat needs n from 2 to 1000, got %d", n)
	}
	first, err := repeat(t.Context(), handler, request, n)
	if err != nil {
		t.Fatalf("idemtest: Repeat: %v", err)
	}
	return first
}

func repeat(ctx context.Context, handler http.Handler, request func() *http.Request, n int) (Answer, error) {
	c, end := serve(handler, request, nil)
	defer end()
	later := max(1, n/4)
	answers, err := c.together(ctx, n-later)
	for i := 0; i < later && err == nil; i++ {
		var a Answer
		a, err = c.settle(ctx, lasting)
		answers = append(answers, a)
	}
	if err != nil {
		return Answer{}, err
	}
	return oneAnswer(answers)
}

// lasting is enough where nothing breaks but what the handler breaks.
func lasting(a Answer, err error) bool { return err != nil || !a.temporary() }

// together sends the intent n times at once. Those that are told to come again
// do, one after the other.
func (c *client) together(ctx context.Context, n int) ([]Answer, error) {
	requests := make([]*http.Request, n)
	for i := range requests {
		r, err := c.next()
		if err != nil {
			return nil, err
		}
		requests[i] = r
	}
	answers, failures := make([]Answer, n), make([]error, n)
	var sending sync.WaitGroup
	for i, r := range requests {
		sending.Go(func() { answers[i], failures[i] = c.transmit(ctx, r) })
	}
	sending.Wait()
	for i := range answers {
		if !lasting(answers[i], failures[i]) {
			answers[i], failures[i] = c.settle(ctx, lasting)
		}
		if failures[i] != nil {
			return nil, failures[i]
		}
	}
	return answers, nil
}

// oneAnswer returns the answer that is no replay if it is the only one and the
// others are the same.
func oneAnswer(answers []Answer) (Answer, error) {
	var fresh []Answer
	for _, a := range answers {
		if !a.Replayed() {
			fresh = append(fresh, a)
		}
	}
	switch {
	case len(fresh) == 0:
		return Answer{}, fmt.Errorf("all %d answers are replays: the key was used before; the answer was %v", len(answers), answers[0])
	case len(fresh) > 1:
		return Answer{}, fmt.Errorf("%d of %d answers do not say Idempotent-Replayed: true, so the handler may have run as often.%s Two of them: %v and %v",
			len(fresh), len(answers), whyFresh(fresh[0]), fresh[0], fresh[1])
	}
	for _, a := range answers {
		if d := fresh[0].difference(a); d != "" {
			return Answer{}, fmt.Errorf("a repeat got another answer: %s", d)
		}
	}
	return fresh[0], nil
}

// whyFresh is a guess at why an answer was not remembered.
func whyFresh(a Answer) string {
	if a.Status >= 400 {
		return fmt.Sprintf(" An answer of status %d is remembered only if the route's policy says so.", a.Status)
	}
	return " Is the route guarded, and its method?"
}
