package idemhttp

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// recorder is the ResponseWriter that handlers get. It holds the answer until
// its transaction has committed: not a byte leaves before. Flush and Hijack are
// not supported; deadlines reach the connection. A handler that goes on after
// its limit writes into nothing.
type recorder struct {
	outer http.ResponseWriter
	limit int // of the body, in bytes

	mu       sync.Mutex
	header   http.Header // the handler's
	sent     http.Header // as it was at WriteHeader
	status   int
	body     buffer
	overflow error
	closed   bool
}

var errHeld = errors.New("idemhttp: the answer is larger than Route.MaxHeld")

func newRecorder(outer http.ResponseWriter, limit int, b *budget) *recorder {
	return &recorder{outer: outer, limit: limit, header: outer.Header().Clone(), body: buffer{budget: b, limit: limit}}
}

// Header is the header that the handler sets; what outer middleware has set is
// in it.
func (rec *recorder) Header() http.Header {
	if rec.header == nil {
		rec.header = make(http.Header)
	}
	return rec.header
}

// WriteHeader takes the first final status. An informational one (1xx) is
// dropped, since it cannot be the answer and nothing may leave yet.
func (rec *recorder) WriteHeader(status int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.writeHeader(status)
}

func (rec *recorder) writeHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	if status < 200 || rec.status != 0 {
		return
	}
	rec.status, rec.sent = status, rec.Header().Clone()
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.closed {
		return 0, http.ErrHandlerTimeout
	}
	if rec.status == 0 {
		rec.writeHeader(http.StatusOK)
	}
	switch {
	case bodiless(rec.status):
		return 0, http.ErrBodyNotAllowed
	case rec.overflow != nil:
		return 0, rec.overflow
	case len(rec.body.bytes)+len(p) > rec.limit:
		rec.overflow = errHeld
	default:
		rec.overflow = rec.body.grow(len(p))
	}
	if rec.overflow != nil {
		return 0, rec.overflow
	}
	rec.body.bytes = append(rec.body.bytes, p...)
	return len(p), nil
}

// FlushError says that nothing can be flushed before the commit.
func (rec *recorder) FlushError() error { return http.ErrNotSupported }

// Hijack says that the connection is not the handler's.
func (rec *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// SetReadDeadline sets the connection's.
func (rec *recorder) SetReadDeadline(t time.Time) error {
	return rec.control(func(c *http.ResponseController) error { return c.SetReadDeadline(t) })
}

// SetWriteDeadline sets the connection's.
func (rec *recorder) SetWriteDeadline(t time.Time) error {
	return rec.control(func(c *http.ResponseController) error { return c.SetWriteDeadline(t) })
}

// EnableFullDuplex enables it on the connection.
func (rec *recorder) EnableFullDuplex() error {
	return rec.control((*http.ResponseController).EnableFullDuplex)
}

func (rec *recorder) control(do func(*http.ResponseController) error) error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.closed {
		return http.ErrHandlerTimeout
	}
	return do(http.NewResponseController(rec.outer))
}

// recording is a whole answer.
type recording struct {
	status int
	header http.Header
	body   []byte
}

// close ends the recording and gives the buffers back when release is called on
// the exchange's end. A handler that never called WriteHeader has answered 200.
func (rec *recorder) close() (*recording, error) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.closed = true
	if rec.status == 0 {
		rec.writeHeader(http.StatusOK)
	}
	rec.sniff()
	if rec.sent.Get("Content-Length") != "" && !bodiless(rec.status) {
		rec.sent.Set("Content-Length", strconv.Itoa(len(rec.body.bytes))) // what the handler said, set right
	}
	return &recording{status: rec.status, header: rec.sent, body: rec.body.bytes}, rec.overflow
}

// abandon ends the recording of a handler that has not returned.
func (rec *recorder) abandon() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.closed = true
	rec.body.release()
}

// sniff sets the Content-Type that net/http would, so that it is remembered.
func (rec *recorder) sniff() {
	_, set := rec.sent["Content-Type"]
	encoded := rec.sent.Get("Content-Encoding") != "" || rec.sent.Get("Transfer-Encoding") != ""
	if len(rec.body.bytes) > 0 && !set && !encoded {
		rec.sent.Set("Content-Type", http.DetectContentType(rec.body.bytes))
	}
}

// bodiless reports whether an answer with status has no body (RFC 9110).
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// write sends the answer on w.
func (rg *recording) write(w http.ResponseWriter) {
	h := w.Header()
	maps.DeleteFunc(h, func(name string, _ []string) bool { _, kept := rg.header[name]; return !kept })
	for name, values := range rg.header {
		h[name] = slices.Clone(values)
	}
	w.WriteHeader(rg.status)
	if len(rg.body) > 0 {
		_, _ = w.Write(rg.body) // the client may be gone; its retry collects the answer
	}
}
