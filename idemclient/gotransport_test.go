package idemclient_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem/idemclient"
)

// Go's transport repeats a request by itself when a connection that it has used
// before is closed without an answer and the request has an Idempotency-Key: the
// server may then have seen it twice. It is the same key.
func TestGoTransport_ownRepeatHasTheSameKey(t *testing.T) {
	s := newServer(t, answer(200, ""), cut, answer(201, "made"))
	client := newClient(t, idemclient.Config{Attempts: 1}) // so that no repeat is ours
	mustPost(t.Context(), t, client, s.URL, "first", 200)
	resp, _ := mustPost(t.Context(), t, client, s.URL, "second", 201)

	got := s.got()
	if len(got) != 3 || got[1] != got[2] || got[1].key == "" || got[1].body != "second" {
		t.Fatalf("got %+v, want the second request twice, the same", got)
	}
	if sent, _ := idemclient.SentFrom(resp); sent.Attempts != 1 || sent.Key != got[1].key {
		t.Errorf("got %+v, want one attempt of ours", sent)
	}
}

// The same with a body that the program gave as a stream: it is kept, so that Go
// can repeat it, too.
func TestGoTransport_ownRepeatHasTheWholeBody(t *testing.T) {
	s := newServer(t, answer(200, ""), cut, answer(201, "made"))
	client := newClient(t, idemclient.Config{Attempts: 1})
	mustPost(t.Context(), t, client, s.URL, "first", 200)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, &closed{Reader: strings.NewReader("second")})
	if resp, _, err := do(client, req); err != nil || resp.StatusCode != 201 {
		t.Fatalf("got %v %v", resp, err)
	}
	if got := s.got(); len(got) != 3 || got[1] != got[2] || got[1].body != "second" {
		t.Fatalf("got %+v, want the second request twice, the same", got)
	}
}

func TestTransport_http2RepeatsWithTheSameKey(t *testing.T) {
	s := &server{answers: []http.HandlerFunc{answer(200, ""), cut, answer(503, ""), answer(201, "made")}}
	s.Server = newHTTP2(t, s)
	client := newClient(t, idemclient.Config{Base: s.Client().Transport})
	mustPost(t.Context(), t, client, s.URL, "b", 200)
	mustPost(t.Context(), t, client, s.URL, "b", 201)
	got := s.got()
	if len(got) != 4 || got[1] != got[2] || got[2] != got[3] || got[0].key == got[1].key {
		t.Fatalf("got %+v, want the second request three times, the same", got)
	}
}
