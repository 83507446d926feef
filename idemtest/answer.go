package idemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Answer is what a client was told, whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Replayed reports whether the answer is a stored one.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// String is the answer in one line, the beginning of its body in it.
func (a Answer) String() string {
	const shown = 200
	mark := ""
	if a.Replayed() {
		mark = ", replayed"
	}
	if len(a.Body) > shown {
		return fmt.Sprintf("%d %q… (%d bytes%s)", a.Status, a.Body[:shown], len(a.Body), mark)
	}
	return fmt.Sprintf("%d %q%s", a.Status, a.Body, mark)
}

// problem is what a problem of the guard's tells a program.
type problem struct {
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"`
}

// problem is the answer as a problem; empty if it is none.
func (a Answer) problem() (p problem) {
	if a.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(a.Body, &p) != nil {
		return problem{}
	}
	return p
}

// temporary reports whether the answer asks its client to send the same request
// again.
func (a Answer) temporary() bool { return a.problem().Retryable }

// unsettled reports whether the answer says that nobody knows the outcome.
func (a Answer) unsettled() bool { return a.problem().Code == "outcome-unknown" }

// definite reports whether a client may stop here: a server's failure tells it
// nothing about what it asked for.
func (a Answer) definite() bool {
	return a.Status < 500 && a.Status != http.StatusTooManyRequests && !a.temporary()
}

// replayedHeaders are the names of the headers that a repeat repeats on every
// route.
var replayedHeaders = [...]string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition",
	"Location", "Etag", "Link", "Last-Modified"}

// difference says how b is not the answer that a is, or nothing.
func (a Answer) difference(b Answer) string {
	if a.Status != b.Status {
		return fmt.Sprintf("status %d and %d", a.Status, b.Status)
	}
	for _, name := range replayedHeaders {
		if x, y := a.Header[name], b.Header[name]; !slices.Equal(x, y) {
			return fmt.Sprintf("header %s %q and %q", name, x, y)
		}
	}
	if !bytes.Equal(a.Body, b.Body) {
		return fmt.Sprintf("body %q and %q", a.Body, b.Body)
	}
	return ""
}
