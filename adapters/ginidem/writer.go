package ginidem

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer is the ResponseWriter of a guarded chain. As gin's own it lets the status
// be changed until something is written, and it writes into the guard's recorder,
// at the end at the latest.
type writer struct {
	http.ResponseWriter
	status int
	size   int  // of the body; -1 before anything is written
	sent   bool // the status has gone to the recorder
}

func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status = status
	}
}

// WriteHeaderNow fixes the status. It goes to the recorder with the body, or when
// the chain has ended, since only then its errors are known.
func (w *writer) WriteHeaderNow() { w.size = max(w.size, 0) }

func (w *writer) send() {
	if !w.sent {
		w.sent = true
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	w.send()
	n, err := w.ResponseWriter.Write(p)
	w.size += n
	return n, err
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	w.send()
	n, err := io.WriteString(w.ResponseWriter, s)
	w.size += n
	return n, err
}

func (w *writer) Status() int   { return w.status }
func (w *writer) Size() int     { return w.size }
func (w *writer) Written() bool { return w.size != -1 }

// Flush does nothing: not a byte leaves before the commit. FlushError says so.
func (w *writer) Flush() { w.WriteHeaderNow() }

// FlushError says that nothing can be flushed before the commit.
func (w *writer) FlushError() error { return http.ErrNotSupported }

// Hijack says that the connection is not the handler's.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// CloseNotify is never told: the work is finished when the client has gone.
func (w *writer) CloseNotify() <-chan bool { return make(chan bool) }

// Pusher is none: nothing is pushed before the commit.
func (w *writer) Pusher() http.Pusher { return nil }

// Unwrap lets http.ResponseController reach the recorder.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
