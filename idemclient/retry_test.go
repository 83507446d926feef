package idemclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/idemclient"
)

func TestTransport_repeatsWhatMayBeRepeated(t *testing.T) {
	replayed := func(status int, body string) http.HandlerFunc {
		return answer(status, body, "Content-Type", "application/problem+json", "Idempotent-Replayed", "true")
	}
	for name, c := range map[string]struct {
		first http.HandlerFunc
		again bool
	}{
		"connection cut":             {cut, true},
		"425":                        {answer(425, ""), true},
		"502":                        {answer(502, "<html>"), true},
		"503":                        {answer(503, ""), true},
		"504":                        {answer(504, ""), true},
		"429 with Retry-After":       {answer(429, "", "Retry-After", "0"), true},
		"429 without":                {answer(429, ""), false},
		"429 with nonsense":          {answer(429, "", "Retry-After", "soon"), false},
		"500":                        {answer(500, ""), false},
		"501":                        {answer(501, ""), false},
		"400":                        {answer(400, ""), false},
		"409 without a problem":      {answer(409, `{"retryable":true}`), false},
		"in flight, 425":             {problem(425, `{"code":"in-flight","retryable":true}`), true},
		"in flight, 409":             {problem(409, `{"code":"in-flight","retryable":true}`), true},
		"in flight, 202":             {problem(202, `{"code":"in-flight","retryable":true}`), true},
		"202 of another kind":        {problem(202, `{"code":"accepted","retryable":true}`), false},
		"202":                        {answer(202, "", "Retry-After", "1"), false},
		"200 that says retryable":    {problem(200, `{"code":"in-flight","retryable":true}`), false},
		"outcome unknown":            {problem(409, `{"code":"outcome-unknown","retryable":true}`), true},
		"body incomplete":            {problem(400, `{"code":"body-incomplete","retryable":true}`), true},
		"mismatch":                   {problem(409, `{"code":"key-mismatch","retryable":false}`), false},
		"not applied":                {problem(500, `{"code":"not-applied","retryable":false}`), false},
		"503 that says no":           {problem(503, `{"code":"closed","retryable":false}`), false},
		"503 whose problem is mute":  {problem(503, `{"code":"busy","retryable":"no"}`), true},
		"503 whose problem is void":  {problem(503, `null`), true},
		"409 whose problem is void":  {problem(409, `{`), false},
		"a stored 409":               {replayed(409, `{"code":"slot-taken","retryable":true}`), false},
		"a stored 202 in flight":     {replayed(202, `{"code":"in-flight","retryable":true}`), false},
		"a problem with a parameter": {answer(409, `{"retryable":true}`, "Content-Type", "application/problem+json; charset=utf-8"), true},
	} {
		s := newServer(t, c.first, answer(201, "made"))
		resp, _, err := post(t.Context(), newClient(t, idemclient.Config{}), s.URL, "b")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := 1
		if c.again {
			want = 2
		}
		s.wantSame(t, want, "b")
		sent, ok := idemclient.SentFrom(resp)
		if !ok || sent.Attempts != want || sent.Stopped != nil || c.again != (resp.StatusCode == 201) {
			t.Errorf("%s: got %d after %+v, want a repeat: %v", name, resp.StatusCode, sent, c.again)
		}
	}
}

func TestTransport_repeatsAnAttemptWithoutAnAnswerInTime(t *testing.T) {
	s := newServer(t, silent, silent, answer(201, "made"))
	client := newClient(t, idemclient.Config{AttemptTimeout: 50 * time.Millisecond})
	mustPost(t.Context(), t, client, s.URL, "b", 201)
	s.wantSame(t, 3, "b")
}

func TestTransport_repeatsWhileTheServerIsDown(t *testing.T) {
	s := newServer(t, answer(201, "made"))
	url := s.URL
	address := s.Listener.Addr().String()
	s.Close()
	attempts := 0
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	up := &server{answers: []http.HandlerFunc{answer(201, "made")}}
	client := newClient(t, idemclient.Config{Base: base(func(r *http.Request) (*http.Response, error) {
		if attempts++; attempts == 3 { // it comes back on the same port
			up.Server = listenOn(t, address, up)
		}
		r.Body, _ = r.GetBody()
		return transport.RoundTrip(r)
	})})
	mustPost(t.Context(), t, client, url, "b", 201)
	if attempts < 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	up.wantSame(t, 1, "b")
}

func TestTransport_handsOverTheLastAnswer(t *testing.T) {
	s := newServer(t, problem(503, `{"code":"unavailable","retryable":true}`))
	client := newClient(t, idemclient.Config{Attempts: 3})
	resp, body := mustPost(t.Context(), t, client, s.URL, "b", 503)
	if body != `{"code":"unavailable","retryable":true}` {
		t.Errorf("the last answer's body is %q", body)
	}
	key := s.wantSame(t, 3, "b")
	if sent, _ := idemclient.SentFrom(resp); sent.Key != key || sent.Attempts != 3 || !errors.Is(sent.Stopped, idemclient.ErrExhausted) {
		t.Errorf("got %+v, want 3 attempts of %q, exhausted", sent, key)
	}
}

func TestTransport_errorTellsTheKeyAndNoSecret(t *testing.T) {
	s := newServer(t, cut)
	url := strings.Replace(s.URL, "http://", "http://user:hunter2@", 1) + "/?token=hunter3"
	req, _ := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("hunter4"))
	inner := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	around := base(func(r *http.Request) (*http.Response, error) { // its errors hold the URL
		r.RequestURI = ""
		r.Body, _ = r.GetBody()
		return inner.Do(r)
	})
	_, err := newTransport(t, idemclient.Config{Base: around, Attempts: 2}).RoundTrip(req)
	var e *idemclient.Error
	if !errors.As(err, &e) || e.Attempts != 2 || e.Key != s.wantSame(t, 2, "hunter4") || !errors.Is(err, idemclient.ErrExhausted) || !errors.Is(err, io.EOF) {
		t.Fatalf("got %#v, want 2 attempts, the key, and both reasons", err)
	}
	if strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), e.Key) {
		t.Errorf("the error tells too much: %v", err)
	}
}

func TestTransport_timeoutIsATimeout(t *testing.T) {
	s := newServer(t, silent)
	_, _, err := post(t.Context(), newClient(t, idemclient.Config{AttemptTimeout: 20 * time.Millisecond, Attempts: 2}), s.URL, "b")
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a timeout that is not the caller's", err)
	}
}

func TestTransport_callersContextEndsAnAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		silent(w, r)
	})
	_, _, err := post(ctx, newClient(t, idemclient.Config{}), s.URL, "b")
	var e *idemclient.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Attempts != 1 {
		t.Fatalf("got %v, want the context's end after one attempt", err)
	}
	if key := s.wantSame(t, 1, "b"); e.Key != key {
		t.Errorf("the error has the key %q, want %q", e.Key, key)
	}
}

func TestTransport_endedContextSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newServer(t, answer(201, ""))
	for _, most := range []int64{1, 100} { // a body that passes through once, and one that is kept
		body := &closed{Reader: strings.NewReader("body")}
		req, _ := http.NewRequestWithContext(ctx, "POST", s.URL, body)
		req.ContentLength = 4
		_, err := newTransport(t, idemclient.Config{MaxBody: most}).RoundTrip(req)
		var e *idemclient.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Attempts != 0 || len(s.got()) != 0 {
			t.Errorf("got %v and %+v, want nothing sent", err, s.got())
		}
		eventually(t, "the body is closed", func() bool { return body.times.Load() > 0 })
	}
}

func TestTransport_doesNotRepeatWhatNoRepeatMends(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(answer(201, ""))
	untrusted.Config.ErrorLog = discard
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := newServer(t, answer(201, ""))
	for name, url := range map[string]string{
		"an untrusted certificate":   untrusted.URL,
		"https where http is spoken": strings.Replace(plain.URL, "http://", "https://", 1),
		"no scheme":                  "//127.0.0.1/",
		"no host":                    "http:///",
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newTransport(t, idemclient.Config{}).RoundTrip(req)
		var e *idemclient.Error
		if !errors.As(err, &e) || e.Attempts != 1 || errors.Is(err, idemclient.ErrExhausted) {
			t.Errorf("%s: got %v, want one attempt", name, err)
		}
	}
}
