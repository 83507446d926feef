package idemhttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

// leaks counts the bytes and headers that reach the server's own writer, and
// can do all that a connection can.
type leaks struct {
	http.ResponseWriter
	wrote atomic.Int64
}

func (l *leaks) WriteHeader(status int) {
	l.wrote.Add(1)
	l.ResponseWriter.WriteHeader(status)
}

func (l *leaks) Write(p []byte) (int, error) {
	l.wrote.Add(1)
	return l.ResponseWriter.Write(p)
}

func (l *leaks) Flush() { l.wrote.Add(1) }

func (l *leaks) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	l.wrote.Add(1)
	return nil, nil, errors.New("hijacked")
}

func (l *leaks) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func TestP10_nothingLeavesBeforeTheCommit(t *testing.T) {
	r := newRig(t)
	var outer *leaks
	r.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			outer = &leaks{ResponseWriter: w}
			next.ServeHTTP(outer, req)
		})
	}
	var flushed, hijacked, asserted error
	var flusher bool
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProcessing) // 1xx are dropped
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot) // superfluous
		_, _ = io.WriteString(w, "begun, ")
		flushed = http.NewResponseController(w).Flush()
		_, _, hijacked = http.NewResponseController(w).Hijack()
		if h, ok := w.(http.Hijacker); ok {
			_, _, asserted = h.Hijack()
		} else {
			asserted = http.ErrNotSupported
		}
		if f, ok := w.(http.Flusher); ok {
			flusher = true
			f.Flush()
		}
		_, _ = io.Copy(w, strings.NewReader("ended"))
		if n := outer.wrote.Load(); n != 0 {
			panic("something has left before the commit")
		}
	})
	r.serve()
	first, second := r.send(post("/x", "k", "")), r.send(post("/x", "k", ""))
	r.want(first, http.StatusAccepted, "")
	if first.body != "begun, ended" || second.body != first.body || second.status != first.status || !second.replayed() {
		t.Errorf("first %q, repeat %d %q", first.body, second.status, second.body)
	}
	for what, err := range map[string]error{"Flush": flushed, "Hijack": hijacked, "Hijack by assertion": asserted} {
		if !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("%s: got %v, want http.ErrNotSupported", what, err)
		}
	}
	if flusher {
		t.Error("the writer says that it is a Flusher, which cannot say no")
	}
}

func TestP10_informationalAnswerIsNeverTheAnswer(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "")), 200, "")
	if got := r.send(post("/x", "k", "")); got.status != 200 || !got.replayed() || got.header.Get("Link") == "" {
		t.Errorf("the repeat got %d %v", got.status, got.header)
	}
}

func TestP10_deadlinesReachTheConnection(t *testing.T) {
	r := newRig(t)
	var faults [3]error
	var cut atomic.Bool
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		faults = [3]error{c.SetReadDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(time.Now().Add(time.Hour)), c.EnableFullDuplex()}
		if cut.Load() {
			_ = c.SetWriteDeadline(time.Now().Add(-time.Hour))
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "")), 201, "")
	for _, err := range faults {
		if err != nil {
			t.Errorf("a deadline: %v", err)
		}
	}
	cut.Store(true)
	if got := r.send(post("/x", "cut", "{}")); got.err == nil {
		t.Errorf("with a write deadline in the past the client got %d", got.status)
	}
	r.wantState("cut", "answered") // what the client did not get, its retry collects
	if got := r.send(post("/x", "cut", "{}")); got.status != 201 || !got.replayed() {
		t.Errorf("the repeat got %d, replayed %v", got.status, got.replayed())
	}
}
