package idemclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/idem-go/idem/idemclient"
)

// closed is a body without GetBody that counts how often it was closed.
type closed struct {
	io.Reader
	times atomic.Int64
}

func (c *closed) Close() error {
	c.times.Add(1)
	return nil
}

// request is a POST to nowhere with these values in its key header.
func request(t testing.TB, ctx context.Context, keys ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:1/orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) > 0 {
		req.Header[header] = keys
	}
	return req
}

func TestTransport_buffersABodyWithoutGetBody(t *testing.T) {
	s := newServer(t, answer(503, ""), cut, answer(201, ""))
	body := &closed{Reader: strings.NewReader("streamed")}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, body)
	if resp, _, err := do(newClient(t, idemclient.Config{MaxBody: 8}), req); err != nil || resp.StatusCode != 201 {
		t.Fatalf("got %v %v", resp, err)
	}
	s.wantSame(t, 3, "streamed")
	if body.times.Load() == 0 {
		t.Error("the body was not closed")
	}
}

func TestTransport_sendsALongBodyOnceAndSaysSo(t *testing.T) {
	const long = "123456789"
	for name, known := range map[string]int64{"known length": 9, "unknown length": -1} {
		s := newServer(t, answer(503, "busy"))
		client := newClient(t, idemclient.Config{MaxBody: 8})
		body := &closed{Reader: strings.NewReader(long)}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, body)
		req.ContentLength = known
		resp, text, err := do(client, req)
		if err != nil || resp.StatusCode != 503 || text != "busy" {
			t.Fatalf("%s: got %v %q %v, want the answer", name, resp, text, err)
		}
		if sent, _ := idemclient.SentFrom(resp); sent.Attempts != 1 || !errors.Is(sent.Stopped, idemclient.ErrBodyNotReplayable) {
			t.Errorf("%s: got %+v, want it to say that the body cannot be replayed", name, sent)
		}
		s.wantSame(t, 1, long)
		if body.times.Load() == 0 {
			t.Errorf("%s: the body was not closed", name)
		}
	}
}

func TestTransport_longBodyOnABrokenConnection(t *testing.T) {
	s := newServer(t, cut)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, &closed{Reader: strings.NewReader("123456789")})
	_, _, err := do(newClient(t, idemclient.Config{MaxBody: 8}), req)
	var e *idemclient.Error
	if !errors.As(err, &e) || e.Attempts != 1 || !errors.Is(err, idemclient.ErrBodyNotReplayable) || !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want one attempt, both reasons", err)
	}
	if key := s.wantSame(t, 1, "123456789"); e.Key != key {
		t.Errorf("the error has the key %q, want %q", e.Key, key)
	}
}

func TestTransport_bodyThatFailsIsNotSent(t *testing.T) {
	broken := errors.New("the disk is gone")
	for name, body := range map[string]io.Reader{
		"at once": iotest.ErrReader(broken),
		"midway":  io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)),
	} {
		s := newServer(t, answer(201, ""))
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, &closed{Reader: body})
		_, _, err := do(newClient(t, idemclient.Config{}), req)
		var e *idemclient.Error
		if !errors.As(err, &e) || e.Attempts != 0 || !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want nothing sent, and the reason", name, err)
		}
		if got := s.got(); len(got) != 0 {
			t.Errorf("%s: %+v arrived", name, got)
		}
	}
}

func TestTransport_bodyOfAnotherLengthIsNotSent(t *testing.T) {
	s := newServer(t, answer(201, ""))
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, &closed{Reader: strings.NewReader("four")})
	req.ContentLength = 5
	_, _, err := do(newClient(t, idemclient.Config{}), req)
	if err == nil || len(s.got()) != 0 {
		t.Fatalf("got %v and %+v, want nothing sent", err, s.got())
	}
}

func TestTransport_contextEndsWhileTheBodyBlocks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	req, _ := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:1/", reader)
	ended := make(chan error, 1)
	transport := newTransport(t, idemclient.Config{})
	go func() {
		_, err := transport.RoundTrip(req)
		ended <- err
	}()
	if _, err := writer.Write([]byte("half")); err != nil { // it is being read
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestTransport_trailersOfABufferedBodyAreSent(t *testing.T) {
	var got string
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) { got = r.Trailer.Get("Checksum") })
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, &closed{Reader: strings.NewReader("abc")})
	req.Trailer = http.Header{"Checksum": {"900150983cd2"}}
	if _, _, err := do(newClient(t, idemclient.Config{}), req); err != nil {
		t.Fatal(err)
	}
	if got != "900150983cd2" {
		t.Errorf("the trailer arrived as %q", got)
	}
}
