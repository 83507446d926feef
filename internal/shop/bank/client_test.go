package bank_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
)

func TestClient_whatProvesThatNothingWasCharged(t *testing.T) {
	b := start(t, bank.Config{})
	for name, c := range map[string]bank.Charge{
		"an unknown card": paying("tok_nothing"),
		"no reference":    {Amount: 1, Card: "tok_ok"},
		"no amount":       {Reference: "r", Card: "tok_ok"},
		"too much":        {Reference: "r", Amount: 1 << 50, Card: "tok_ok"},
	} {
		if _, err := b.Charge(t.Context(), "k", c); !errors.Is(err, bank.ErrRefused) || errors.Is(err, bank.ErrUnreachable) {
			t.Errorf("%s: got %v, want ErrRefused", name, err)
		}
	}
	b.must("k", paying("tok_ok")) // the key is still free
	b.stop()
	if _, err := b.Charge(t.Context(), "k", paying("tok_ok")); !errors.Is(err, bank.ErrUnreachable) || !errors.Is(err, bank.ErrRefused) {
		t.Errorf("a bank that is not there: got %v, want ErrUnreachable, which is an ErrRefused", err)
	}
}

func TestClient_whatDoesNot(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"another's 404":     http.NotFound,
		"another's 429":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"500":               say(500, `{"code":"x","detail":"","charged":false}`),
		"no word":           say(422, `{"code":"x","detail":""}`),
		"charged":           say(422, `{"code":"x","detail":"","charged":true}`),
		"another's receipt": say(201, `{"id":"ch_1","reference":"r","amount":1,"card":"tok_ok","status":"captured"}`),
		"half a receipt":    say(201, `{"id":"ch_1","reference":"charge:payment:1"`),
		"a strange status":  say(201, `{"id":"ch_1","reference":"charge:payment:1","amount":1500,"card":"tok_ok","status":"lent"}`),
		"a redirect":        func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://127.0.0.1:1/", 307) },
		"nothing":           func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			client := bank.Client{URL: server.URL}
			_, err := client.Charge(t.Context(), "k", paying("tok_ok"))
			wantUnknown(t, err)
		})
	}
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Go's transport would send the charge again on its own, on a connection that it
// has kept: the request is one that it holds to be idempotent.
func TestClient_sendsOnceOnAConnectionThatBreaks(t *testing.T) {
	var charges atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			charges.Add(1)
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	kept := &http.Client{Transport: transport}
	keep := func() {
		answer, err := kept.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}

	keep()
	client := bank.Client{URL: server.URL, HTTP: kept}
	_, err := client.Charge(t.Context(), "k", paying("tok_keyless"))
	wantUnknown(t, err)
	if got := charges.Load(); got != 1 {
		t.Errorf("the charge was sent %d times, want once", got)
	}

	keep()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k")
	if answer, err := kept.Do(req); err == nil {
		_ = answer.Body.Close()
	}
	if got := charges.Load(); got != 3 {
		t.Errorf("an ordinary request was sent %d times, want twice: then this test proves nothing", got-1)
	}
}

// A caller's transport may be one that tries again. That the bank is gone by then
// says nothing of what was sent before.
func TestClient_aBankThatIsGoneTheSecondTimeProvesNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	client := bank.Client{URL: server.URL, HTTP: &http.Client{Transport: stubborn{server}}}
	_, err := client.Charge(t.Context(), "k", paying("tok_keyless"))
	wantUnknown(t, err)
	if err == nil || !strings.Contains(err.Error(), "dial") {
		t.Errorf("got %v, want the second attempt's", err)
	}
}

// stubborn makes every request twice; the server is gone the second time.
type stubborn struct{ server *httptest.Server }

// RoundTrip implements http.RoundTripper.
func (s stubborn) RoundTrip(r *http.Request) (*http.Response, error) {
	if answer, err := http.DefaultTransport.RoundTrip(r.Clone(r.Context())); err == nil {
		return answer, nil
	}
	s.server.Close()
	return http.DefaultTransport.RoundTrip(r)
}
