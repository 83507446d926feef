package idemclient_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/idemclient"
)

const header = "Idempotency-Key"

// arrival is a request that reached a server.
type arrival struct {
	method, key, body string
	keys              int
}

// server answers the n-th arrival with the n-th of its answers, and all further
// ones with the last.
type server struct {
	*httptest.Server
	answers []http.HandlerFunc

	mu       sync.Mutex
	arrivals []arrival
}

func newServer(t testing.TB, answers ...http.HandlerFunc) *server {
	s := &server{answers: answers}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = discard
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.arrivals)
	s.arrivals = append(s.arrivals, arrival{r.Method, r.Header.Get(header), string(body), len(r.Header.Values(header))})
	s.mu.Unlock()
	s.answers[min(n, len(s.answers)-1)](w, r)
}

func (s *server) got() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]arrival(nil), s.arrivals...)
}

// wantSame fails unless n requests arrived, each with the body and one key, which
// is the same in all and is returned.
func (s *server) wantSame(t testing.TB, n int, body string) string {
	t.Helper()
	got := s.got()
	if len(got) != n {
		t.Fatalf("%d requests arrived, want %d", len(got), n)
	}
	for _, a := range got {
		if a.keys != 1 || a.key == "" || a.key != got[0].key || a.body != body {
			t.Fatalf("got %+v; want one key, the same in all, and the body %q", got, body)
		}
	}
	return got[0].key
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func problem(status int, body string) http.HandlerFunc {
	return answer(status, body, "Content-Type", "application/problem+json")
}

// cut closes the connection without an answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// silent reads the request and says nothing until the client is gone.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// newTransport returns a transport that waits only a little, on connections of
// its own.
func newTransport(t testing.TB, config idemclient.Config) *idemclient.Transport {
	t.Helper()
	if config.Base == nil {
		base := &http.Transport{}
		t.Cleanup(base.CloseIdleConnections)
		config.Base = base
	}
	if config.MinWait == 0 {
		config.MinWait, config.MaxWait = time.Millisecond, 2*time.Millisecond
	}
	transport, err := idemclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func newClient(t testing.TB, config idemclient.Config) *http.Client {
	return &http.Client{Transport: newTransport(t, config)}
}

// post sends body and returns the answer with its body read.
func post(ctx context.Context, client *http.Client, url, body string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	return do(client, req)
}

func do(client *http.Client, req *http.Request) (*http.Response, string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// mustPost is post where an answer with this status has to come.
func mustPost(ctx context.Context, t testing.TB, client *http.Client, url, body string, status int) (*http.Response, string) {
	t.Helper()
	resp, got, err := post(ctx, client, url, body)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if resp.StatusCode != status {
		t.Fatalf("got %d %s, want %d", resp.StatusCode, got, status)
	}
	return resp, got
}

// base is a round tripper without a network.
type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return b(r)
}

func respond(status int, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody}
}

var discard = log.New(io.Discard, "", 0)

// listenOn serves h on an address that was in use before.
func listenOn(t testing.TB, address string, h http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close() // the one that it made
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// newHTTP2 serves h by HTTP/2.
func newHTTP2(t testing.TB, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = discard
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// eventually waits, within a bound, until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never happened: %s", what)
		}
	}
}
