package idemhttp

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/idem-go/idem"
)

// The codes of the problems: the last part of a problem's type, and its member
// "code".
const (
	codeKeyMissing      = "key-missing"
	codeKeyInvalid      = "key-invalid"
	codeMismatch        = "key-mismatch"
	codeInFlight        = "in-flight"
	codeUnauthenticated = "unauthenticated"
	codeReplayRefused   = "replay-refused"
	codeMediaType       = "media-type-unsupported"
	codeBodyTooLarge    = "body-too-large"
	codeBodyIncomplete  = "body-incomplete"
	codeBodyInvalid     = "body-invalid"
	codeWithheld        = "answer-withheld"
	codeExpired         = "answer-expired"
	codeUnknown         = "outcome-unknown"
	codeNotApplied      = "not-applied"
	codeUnavailable     = "unavailable"
)

// problemBase is where a problem's type leads: the page made from the table
// below, one heading per code.
const problemBase = "https://github.com/idem-go/idem/blob/main/docs/http.md#"

// situation is one row of the table of all that a client may see besides a
// handler's answer and its replay.
type situation struct {
	Code       string
	Status     int
	Title      string
	Detail     string
	Retryable  bool // may the same request be sent again with the same key?
	SafeNewKey bool // may the client make a new key without fear of doubling anything?
	Outcome    idem.Outcome
}

// situations is the table of design section 3; a profile replaces statuses in
// it, and docs/http.md is made from it. SafeNewKey judges every send under the
// key, not only this one.
var situations = []situation{
	{Code: codeKeyMissing, Status: http.StatusBadRequest, SafeNewKey: true, Outcome: idem.OutcomeKeyMissing,
		Title:  "The Idempotency-Key header is missing",
		Detail: "Make a random key once per intent, for example a UUID, send it in the Idempotency-Key header, and send the same key with every retry of that intent."},
	{Code: codeKeyInvalid, Status: http.StatusBadRequest, SafeNewKey: true, Outcome: idem.OutcomeKeyInvalid,
		Title:  "The idempotency key is not valid",
		Detail: "A key is 1 to 255 bytes of visible ASCII, bare or as a quoted string, sent once."},
	{Code: codeMismatch, Status: http.StatusConflict, Outcome: idem.OutcomeMismatch,
		Title:  "The key belongs to another request",
		Detail: "This key was first used with another request, which may have been carried out. Nothing was changed by this one. Repeat the first request to learn its outcome."},
	{Code: codeInFlight, Status: http.StatusTooEarly, Retryable: true, Outcome: idem.OutcomeInFlight,
		Title:  "The first request with this key is still running",
		Detail: "Send the same request with the same key again after the time in Retry-After to get its answer."},
	{Code: codeUnauthenticated, Status: http.StatusUnauthorized, Outcome: idem.OutcomeUnauthenticated,
		Title:  "The caller could not be identified",
		Detail: "Send valid credentials. Keep the key: an earlier request may have been carried out under it."},
	{Code: codeReplayRefused, Status: http.StatusForbidden, Outcome: idem.OutcomeReplayRefused,
		Title:  "The caller may not see the stored answer",
		Detail: "The first request with this key has an answer, but this caller no longer has the right to it. Do not repeat the intent with a new key."},
	{Code: codeMediaType, Status: http.StatusUnsupportedMediaType, Outcome: idem.OutcomeReleased,
		Title:  "A gRPC call or a stream cannot be guarded",
		Detail: "Nothing was done with this request. Its answer would be a stream, which cannot be held until the commit and repeated. Send a unary call of the Connect protocol or plain HTTP; keep the key, since a request of another media type may have been carried out under it."},
	{Code: codeBodyTooLarge, Status: http.StatusRequestEntityTooLarge, Outcome: idem.OutcomeBodyTooLarge,
		Title:  "The request's body is too large",
		Detail: "Nothing was done with this request. Send a smaller body."},
	{Code: codeBodyIncomplete, Status: http.StatusBadRequest, Retryable: true, Outcome: idem.OutcomeReleased,
		Title:  "The request's body did not arrive whole",
		Detail: "Nothing was done with this request. Send it again with the same key."},
	{Code: codeBodyInvalid, Status: http.StatusBadRequest, Outcome: idem.OutcomeReleased,
		Title:  "The request's body cannot be compared",
		Detail: "Nothing was done with this request. Its body has no exact canonical form, so a retry could not be told from another request."},
	{Code: codeWithheld, Status: http.StatusConflict, Outcome: idem.OutcomeWithheld,
		Title:  "The answer was too large to be remembered",
		Detail: "The first request with this key was carried out and answered, but its answer was not kept. Read the resource instead; do not repeat the intent with a new key."},
	{Code: codeExpired, Status: http.StatusConflict, Outcome: idem.OutcomeExpired,
		Title:  "The answer's time is over",
		Detail: "The first request with this key was carried out long ago and its answer is no longer kept. Read the resource instead; do not repeat the intent with a new key."},
	{Code: codeUnknown, Status: http.StatusConflict, Retryable: true, Outcome: idem.OutcomeUnknown,
		Title:  "The outcome of the first request is not known",
		Detail: "Whether the first request with this key took effect has to be found out by the operator. Keep the key and repeat the request later; do not use a new key."},
	{Code: codeNotApplied, Status: http.StatusInternalServerError, Outcome: idem.OutcomeReleased,
		Title:  "The request was not applied",
		Detail: "The server refused to commit this request; nothing was changed and the key is free."},
	{Code: codeUnavailable, Status: http.StatusServiceUnavailable, Retryable: true, Outcome: idem.OutcomeUnavailable,
		Title:  "The request could not be carried out or confirmed now",
		Detail: "Send the same request with the same key again after the time in Retry-After. Do not use a new key: an attempt may have been carried out."},
}

// problem is one situation as it is told to a client (RFC 9457).
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	Retryable  bool   `json:"retryable"`
	SafeNewKey bool   `json:"safe_new_key"`

	outcome idem.Outcome
}

// problemTable is the table with a profile's statuses put in, by code.
func problemTable(p Profile) map[string]problem {
	table := make(map[string]problem, len(situations))
	for _, s := range situations {
		status := s.Status
		if other, ok := profiles[p][s.Code]; ok {
			status = other
		}
		table[s.Code] = problem{Type: problemBase + s.Code, Title: s.Title, Status: status, Detail: s.Detail,
			Code: s.Code, Retryable: s.Retryable, SafeNewKey: s.SafeNewKey, outcome: s.Outcome}
	}
	return table
}

// retryAfter is the number of seconds a client is asked to wait: long enough
// not to hammer, short enough for somebody who looks at a screen.
const retryAfter = 1

func (p problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic("idemhttp: a problem cannot fail to encode: " + err.Error())
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if p.Code == codeInFlight || p.Code == codeUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client may be gone; its retry will tell it
}
