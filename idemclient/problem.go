package idemclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxProblem bounds the bytes of a problem that are read: a guard's have less
// than 1 KiB.
const maxProblem = 64 << 10

// Problem is an answer in application/problem+json (RFC 9457), with the members
// that Idem's guard adds. It is an error for callers that want to return it.
type Problem struct {
	// Type, Title, Status and Detail are RFC 9457's. Status is the answer's own.
	Type, Title string
	Status      int
	Detail      string
	// Code names the situation, for example "key-mismatch"; docs/http.md lists
	// them. Without such a member it is the last part of Type; empty if that is
	// none.
	Code string
	// Retryable says that the same request with the same key may be sent again.
	// The transport has done so as often as it may.
	Retryable bool
	// SafeNewKey says that a new key can double nothing. Where it is false, a
	// new key may do a second time what was done before. The transport never
	// makes one by itself: the caller does, by Store.Forget or a new request.
	SafeNewKey bool

	retryableSaid bool // there was such a member
}

// Error names the status and the code, never the answer's own prose.
func (p *Problem) Error() string {
	text := fmt.Sprintf("idemclient: the server answered %d", p.Status)
	if p.Code != "" {
		text += " " + p.Code
	}
	if p.SafeNewKey {
		return text + "; a new key is safe"
	}
	return text + "; a new key is not safe"
}

// ProblemFrom reads the problem that an answer is, and reports whether it is one.
// The body can be read as before. An answer without a valid problem document, or
// with one of more than 64 KiB, is none. Not safe for concurrent use of one
// answer.
//
// An answer "key-missing" to a request of the transport is never SafeNewKey: the
// key was sent and got lost on the way, and an earlier attempt's may not have been.
func ProblemFrom(resp *http.Response) (*Problem, bool) {
	if resp == nil || resp.Body == nil || !isProblem(resp.Header) {
		return nil, false
	}
	data, whole, err := readAhead(resp, maxProblem)
	if err != nil || !whole {
		return nil, false
	}
	p, ok := parseProblem(data, resp.StatusCode)
	if ok && p.Code == "key-missing" {
		if _, keyed := SentFrom(resp); keyed {
			p.SafeNewKey = false
		}
	}
	return p, ok
}

func isProblem(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == "application/problem+json"
}

// parseProblem reads a problem document. As RFC 9457 says, a member of the wrong
// type is ignored.
func parseProblem(data []byte, status int) (*Problem, bool) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, false
	}
	p := &Problem{Status: status}
	member(members, "type", &p.Type)
	member(members, "title", &p.Title)
	member(members, "detail", &p.Detail)
	member(members, "code", &p.Code)
	p.retryableSaid = member(members, "retryable", &p.Retryable)
	member(members, "safe_new_key", &p.SafeNewKey)
	if p.Code == "" {
		p.Code = p.Type[strings.LastIndexAny(p.Type, "#/")+1:]
	}
	if !isCode(p.Code) {
		p.Code = ""
	}
	return p, true
}

// member sets target to a member of its type and reports whether there is one.
func member[T any](members map[string]json.RawMessage, name string, target *T) bool {
	var value *T // null is not a value
	if err := json.Unmarshal(members[name], &value); err != nil || value == nil {
		return false
	}
	*target = *value
	return true
}

// isCode keeps what is not a word of a server's table out of errors and logs.
func isCode(s string) bool {
	const most = 64
	return len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// readAhead reads up to limit bytes of an answer's body and puts them back in
// front of it. It reports whether that was all of it; then the body's original is
// closed.
func readAhead(resp *http.Response, limit int64) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	whole = int64(len(data)) <= limit
	if err == nil && whole {
		err = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(data))
		return data, true, err
	}
	resp.Body = &prefixed{Reader: io.MultiReader(bytes.NewReader(data), resp.Body), Closer: resp.Body}
	return data, false, err
}

// prefixed is a body of which some has been read already.
type prefixed struct {
	io.Reader
	io.Closer
}
