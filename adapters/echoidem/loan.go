package echoidem

import (
	"net/http"
	"sync"
)

// loan is a framework's context, which belongs to a pool, lent to the goroutine
// that runs the handler. It is given back when the handler has returned, even if
// the guard has given the handler up before that.
type loan struct {
	mu      sync.Mutex
	over    bool
	running chan struct{} // closed when the handler has returned
}

// begin lends the context, and reports false when the request is over.
func (l *loan) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.running = make(chan struct{})
	return true
}

func (l *loan) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.running)
	l.running = nil
}

// lent is the channel that tells the return of a handler that runs, or nil.
func (l *loan) lent() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// end lends no more and waits for a handler that still runs. Before that it
// flushes, so that the client has its answer meanwhile.
func (l *loan) end(flush func()) {
	l.mu.Lock()
	l.over = true
	running := l.running
	l.mu.Unlock()
	if running != nil {
		flush()
		<-running
	}
}

// front is the writer that the guard answers on.
type front struct {
	http.ResponseWriter
	loan *loan
}

// WriteHeader asks the client for another connection if this one has to wait for
// a handler that was given up.
func (f *front) WriteHeader(status int) {
	if f.loan.lent() != nil {
		f.Header().Set("Connection", "close")
	}
	f.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (f *front) Unwrap() http.ResponseWriter { return f.ResponseWriter }
