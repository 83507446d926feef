package shop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The headers that make trouble on purpose, where the shop was told to obey.
const (
	delayHeader = "X-Demo-Delay"
	failHeader  = "X-Demo-Fail"
)

// The values of X-Demo-Fail.
const (
	failPanic      = "panic"
	fail500        = "500"
	failDropBefore = "drop-before-commit"
	failDropAfter  = "drop-after-commit"
)

// maxDelay bounds X-Demo-Delay: longer than the handler's limit, so that this
// can be shown, too.
const maxDelay = time.Minute

// trouble is what one request asked for. It travels to the handler in the
// request's context.
type trouble struct {
	delay time.Duration
	fail  string
	drop  func() // cuts our connection to the client, once
}

type troubleKey struct{}

// withFaults obeys the headers. It stands outside the guard: cutting the
// connection to a client is nothing that a guarded handler could do.
func withFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, err := readTrouble(r)
		if err != nil {
			refuse(w, "fault-invalid", err.Error()+".")
			return
		}
		ctx, leave := context.WithCancel(context.WithValue(r.Context(), troubleKey{}, &t))
		defer leave()
		r = r.WithContext(ctx)
		switch t.fail {
		case failDropBefore:
			d := &droppable{w: w, leave: leave}
			t.drop = d.drop
			defer d.end()
			next.ServeHTTP(d, r)
		case failDropAfter:
			next.ServeHTTP(unsent{make(http.Header)}, r)
			panic(http.ErrAbortHandler) // closes the connection
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func readTrouble(r *http.Request) (t trouble, err error) {
	if text := r.Header.Get(delayHeader); text != "" {
		t.delay, err = time.ParseDuration(text)
		if err != nil || t.delay < 0 || t.delay > maxDelay {
			return t, fmt.Errorf("%s must be a duration from 0s to %s, such as 500ms", delayHeader, maxDelay)
		}
	}
	t.fail = r.Header.Get(failHeader)
	known := []string{"", failPanic, fail500, failDropBefore, failDropAfter}
	if !slices.Contains(known, t.fail) {
		return t, fmt.Errorf("%s must be one of %q", failHeader, known[1:])
	}
	return t, nil
}

// makeTrouble does what the request asked for, where a handler would otherwise
// answer: after its writes. It has answered, or nobody listens, if it returns
// true.
func makeTrouble(w http.ResponseWriter, r *http.Request) bool {
	t, ok := r.Context().Value(troubleKey{}).(*trouble)
	if !ok {
		return false
	}
	if t.drop != nil {
		t.drop()
	}
	if t.delay > 0 {
		select {
		case <-time.After(t.delay):
		case <-r.Context().Done():
			refuse(w, "failed-on-purpose", "The delay was longer than the handler's time.")
			return true
		}
	}
	switch t.fail {
	case failPanic:
		panic("shop: " + failHeader + ": " + failPanic)
	case fail500:
		refuse(w, "failed-on-purpose", "This request asked for it.")
		return true
	}
	return false
}

// droppable passes an answer on unless the connection has been cut meanwhile.
// The handler may cut it from another goroutine than the one that answers.
type droppable struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	leave func() // cancels the request's context, as the loss of a client does
	over  bool   // cut, or the answer is complete
}

func (d *droppable) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	d.over = true
	if conn, _, err := http.NewResponseController(d.w).Hijack(); err == nil {
		_ = conn.Close()
	}
	d.leave()
}

func (d *droppable) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
}

// Header implements http.ResponseWriter.
func (d *droppable) Header() http.Header { return d.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (d *droppable) WriteHeader(status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		d.w.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (d *droppable) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return 0, io.ErrClosedPipe
	}
	return d.w.Write(p)
}

// unsent swallows an answer.
type unsent struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unsent) Header() http.Header { return u.header }

// WriteHeader implements http.ResponseWriter.
func (u unsent) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (u unsent) Write(p []byte) (int, error) { return len(p), nil }
