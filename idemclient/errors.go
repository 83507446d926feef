package idemclient

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// The conditions that callers tell apart with errors.Is. Messages may gain
// detail; these identities stay.
var (
	// ErrKeyInvalid reports a key that is not 1 to MaxKey bytes of visible
	// ASCII, or a request that carries an empty key or several. Nothing was sent.
	ErrKeyInvalid = errors.New("idemclient: invalid key")

	// ErrIntentInvalid reports a name that is not 1 to MaxIntent bytes of valid
	// UTF-8 without NUL. Nothing was sent.
	ErrIntentInvalid = errors.New("idemclient: invalid name of an intent")

	// ErrNoStore reports a named intent where Config.Store is nil: without one,
	// the same name would get another key next time. Nothing was sent.
	ErrNoStore = errors.New("idemclient: an intent with a name needs Config.Store")

	// ErrKeyTooOld reports a kept key that is older than Config.MaxAge: the server
	// may have forgotten it, and would run the request as a new one. An earlier
	// process may have sent it, so the outcome is to be read from the server. This
	// call sent nothing.
	ErrKeyTooOld = errors.New("idemclient: the intent's key is older than the server's memory of keys; read what became of the intent instead of repeating it")

	// ErrExhausted reports that the request could be repeated, but Config.Attempts,
	// Config.Total or the context's deadline leaves no room for it.
	ErrExhausted = errors.New("idemclient: no attempt is left")

	// ErrBodyNotReplayable reports that the request could be repeated, but its body
	// cannot: it has no GetBody and is longer than Config.MaxBody.
	ErrBodyNotReplayable = errors.New("idemclient: the body cannot be sent again; set GetBody, or raise Config.MaxBody")
)

// Error is what the transport returns when it has no answer to return; in an
// error of an http.Client it is found with errors.As. Err is the reason, for
// errors.Is: a condition of this package, the context's error, the last
// attempt's. Its text holds no URL, body or key.
type Error struct {
	// Key is the intent's key, or empty if it got none.
	Key string
	// Attempts is how often the request was handed to Config.Base. If it is 0,
	// nothing was sent by this call. Otherwise the outcome is unknown, and only
	// a repeat with the same key is safe.
	Attempts int
	// Err is never nil.
	Err error
}

// Error tells whether anything was sent, and the reason.
func (e *Error) Error() string {
	reason := strings.TrimPrefix(e.Err.Error(), "idemclient: ")
	if e.Attempts == 0 {
		return "idemclient: not sent: " + reason
	}
	return fmt.Sprintf("idemclient: the outcome is unknown (attempts: %d), repeat it with the same key: %s", e.Attempts, reason)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the reason is that time ran out, as net.Error and
// url.Error do.
func (e *Error) Timeout() bool {
	var timeout interface{ Timeout() bool }
	return errors.As(e.Err, &timeout) && timeout.Timeout()
}

// withoutURL is err without the URL that a base transport may have put around
// it: a query may hold secrets.
func withoutURL(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}
