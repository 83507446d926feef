package idem

import "time"

// HeaderField is one line of an answer's header: a name as it was written and
// one value. The order of an answer's fields is kept.
type HeaderField struct {
	Name  string
	Value string
}

// Answer is what the first request was told and what every repeat gets, byte
// for byte, until ExpiresAt. It is a value: nothing in it is shared with the
// database or with other requests once it has been read, but waiters of one
// request share one Answer and must not change it.
type Answer struct {
	// Status is the HTTP status, 200 to 599.
	Status int
	// Header is the part of the header that is replayed, in order.
	Header []HeaderField
	// Body is the body's bytes; nil when a Reference is remembered instead.
	Body []byte
	// Reference is what the handler gave to Reference on a route that replays
	// a resource; empty otherwise.
	Reference string
	// CreatedAt is when the answer was stored and ExpiresAt when its time is
	// over, both by the database's clock. Zero for an answer not yet stored.
	CreatedAt time.Time
	ExpiresAt time.Time
}
