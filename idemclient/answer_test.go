package idemclient_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemclient"
)

// halved sends the head of an answer, half of its body, and closes.
func halved(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "8")
	w.WriteHeader(201)
	_, _ = io.WriteString(w, "half")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestTransport_asksAgainForAnAnswerThatWasCutOff(t *testing.T) {
	s := newServer(t, halved, halved, answer(201, "the same", "Idempotent-Replayed", "true"))
	resp, body := mustPost(t.Context(), t, newClient(t, idemclient.Config{}), s.URL, "b", 201)
	if body != "the same" || resp.ContentLength != 8 {
		t.Errorf("got %q of %d bytes, want it whole", body, resp.ContentLength)
	}
	s.wantSame(t, 3, "b")
}

func TestTransport_asksAgainForAnAnswerThatStalls(t *testing.T) {
	stalled := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "8")
		w.WriteHeader(201)
		_ = http.NewResponseController(w).Flush()
		silent(w, r)
	}
	s := newServer(t, stalled, answer(201, "the same"))
	client := newClient(t, idemclient.Config{AttemptTimeout: 100 * time.Millisecond})
	if _, body := mustPost(t.Context(), t, client, s.URL, "b", 201); body != "the same" {
		t.Errorf("got %q", body)
	}
	s.wantSame(t, 2, "b")
}

func TestTransport_passesLongAndStreamedAnswersOn(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 3<<20)
	for name, handler := range map[string]http.HandlerFunc{
		"long": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = w.Write(long)
		},
		"streamed": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(long)
		},
		"a long problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(409)
			_, _ = w.Write(long)
		},
	} {
		s := newServer(t, handler)
		resp, body, err := post(t.Context(), newClient(t, idemclient.Config{}), s.URL, "b")
		if err != nil || body != string(long) {
			t.Errorf("%s: got %d bytes %v, want %d", name, len(body), err, len(long))
		}
		if sent, ok := idemclient.SentFrom(resp); !ok || sent.Attempts != 1 {
			t.Errorf("%s: got %+v", name, sent)
		}
	}
}

func TestTransport_firstBytesOfAStreamArriveBeforeItsEnd(t *testing.T) {
	release := make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = io.WriteString(w, "two\n")
	})
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("b"))
	resp, err := newClient(t, idemclient.Config{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	if line, err := lines.ReadString('\n'); line != "one\n" || err != nil {
		t.Fatalf("got %q %v", line, err)
	}
	close(release)
	if line, err := lines.ReadString('\n'); line != "two\n" || err != nil {
		t.Fatalf("got %q %v", line, err)
	}
}

func TestTransport_unwantedAnswersFreeTheirConnection(t *testing.T) {
	s := newServer(t, answer(503, strings.Repeat("x", 8<<10)), problem(503, `{"retryable":true}`), answer(502, ""), answer(201, ""))
	var fresh atomic.Int64
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			fresh.Add(1)
		}
	}}
	ctx := httptrace.WithClientTrace(t.Context(), trace)
	mustPost(ctx, t, newClient(t, idemclient.Config{MaxAnswer: 1 << 10}), s.URL, "b", 201)
	s.wantSame(t, 4, "b")
	if fresh.Load() != 1 {
		t.Errorf("%d connections for 4 attempts, want 1", fresh.Load())
	}
}

// endless is a body without an end that counts what is read of it.
type endless struct {
	read   int
	closed bool
}

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	if e.read > 10<<20 {
		return 0, io.ErrUnexpectedEOF // the test has failed by now
	}
	return len(p), nil
}

func (e *endless) Close() error {
	e.closed = true
	return nil
}

func TestTransport_endlessUnwantedAnswerIsReadALittleAndClosed(t *testing.T) {
	body := &endless{}
	attempts := 0
	b := base(func(*http.Request) (*http.Response, error) {
		if attempts++; attempts > 1 {
			return respond(201), nil
		}
		resp := respond(503)
		resp.Body, resp.ContentLength = body, -1
		return resp, nil
	})
	resp, err := newTransport(t, idemclient.Config{Base: b}).RoundTrip(request(t, t.Context()))
	if err != nil || resp.StatusCode != 201 {
		t.Fatalf("got %v %v", resp, err)
	}
	if body.read > 128<<10 || !body.closed {
		t.Errorf("%d bytes were read, closed: %v; want at most 128 KiB, closed", body.read, body.closed)
	}
}

func TestTransport_stalledUnwantedAnswerDoesNotHoldItUp(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(503)
		_ = http.NewResponseController(w).Flush()
		silent(w, r)
	}, answer(201, ""))
	mustPost(t.Context(), t, newClient(t, idemclient.Config{}), s.URL, "b", 201)
	s.wantSame(t, 2, "b")
}

func TestTransport_upgradedConnectionIsTheCallers(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString(line)
		_ = rw.Flush()
	})
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := newClient(t, idemclient.Config{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("the body is a %T, want a connection", resp.Body)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("got %q %v", line, err)
	}
}
