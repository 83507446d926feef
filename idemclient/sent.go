package idemclient

import "net/http"

// Sent says how an answer was come by.
type Sent struct {
	// Key is the intent's key.
	Key string
	// Attempts is how often the request was handed to Config.Base. Go's own
	// transport may have sent an attempt twice by itself, with the same key.
	Attempts int
	// Stopped says why an answer that may be asked for again was returned all the
	// same: ErrExhausted or ErrBodyNotReplayable (errors.Is). Nil means that the
	// answer is final.
	Stopped error
}

// SentFrom tells how an answer was come by, and whether it came through a
// Transport that gave its request a key or found one on it.
func SentFrom(resp *http.Response) (Sent, bool) {
	if resp == nil || resp.Request == nil {
		return Sent{}, false
	}
	note, ok := resp.Request.Context().Value(deliveryNote{}).(*Sent)
	if !ok {
		return Sent{}, false
	}
	return *note, true
}
