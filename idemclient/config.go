package idemclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The defaults of Config.
const (
	// DefaultMaxAge is as long as a guard remembers keys by default.
	DefaultMaxAge = 72 * time.Hour

	// DefaultAttempts is more than fit into DefaultTotal while a key is in
	// flight, so that it bounds only attempts that fail fast.
	DefaultAttempts = 20

	// DefaultAttemptTimeout is a guard's handler limit of 30 s, its wait of 5 s
	// and its commit of 10 s: by then it has answered.
	DefaultAttemptTimeout = 45 * time.Second

	// DefaultTotal leaves room for an attempt after the 65 s within which a dead
	// owner's key is free again.
	DefaultTotal = 2 * time.Minute

	// DefaultMinWait bounds the wait before the second attempt: a restarted
	// connection is there by then.
	DefaultMinWait = 200 * time.Millisecond

	// DefaultMaxWait bounds every wait that the server did not ask for.
	DefaultMaxWait = 10 * time.Second

	// DefaultMaxBody is the largest body that a guard takes by default, in bytes.
	DefaultMaxBody = 1 << 20

	// DefaultMaxAnswer is the largest answer that a guard remembers by default,
	// in bytes.
	DefaultMaxAnswer = 1 << 20
)

// Config says how a Transport works. Its zero value works for intents without a
// name.
type Config struct {
	// Base sends one attempt. Nil means http.DefaultTransport.
	Base http.RoundTripper
	// Store keeps the keys of named intents (WithIntent). Nil means that there are
	// none: a request with a name is refused.
	Store Store
	// MaxAge is how old a kept key may be and still be sent. It must not exceed the
	// time for which the server remembers keys (a route's TTL, or its tombstone):
	// beyond it, a repeat would run as a new request. Zero means 72h.
	MaxAge time.Duration
	// Header carries the key. Empty means Idempotency-Key.
	Header string
	// Quoted sends keys as Structured Field Strings ("k"), as draft-07 of the
	// IETF wants it. False means bare; only a key with a quote or a comma is quoted
	// then.
	Quoted bool
	// Methods are the methods whose requests get a key and are repeated; others
	// are handed to Base untouched. PUT and DELETE may be added, where the
	// server guards them. Empty means POST and PATCH.
	Methods []string
	// Attempts is how often a request is sent at most. Zero means 20; 1 means
	// never again.
	Attempts int
	// AttemptTimeout bounds one attempt, until its answer begins, or is there
	// whole if its length is known and within MaxAnswer. It should exceed what the
	// server allows itself. Zero means 45s.
	AttemptTimeout time.Duration
	// Total bounds all attempts and waits of one call. A context's deadline may
	// end it sooner. Zero means 2m.
	Total time.Duration
	// MinWait is the bound of the wait before the second attempt. It doubles with
	// each further one; the wait is random between zero and the bound, and comes on
	// top of the answer's Retry-After. Zero means 200ms.
	MinWait time.Duration
	// MaxWait is where the doubling ends. Zero means 10s.
	MaxWait time.Duration
	// MaxBody is how many bytes of a body without GetBody are kept for repeats. A
	// longer one is sent once (ErrBodyNotReplayable). They are read before the first
	// attempt; a context that ends closes a body that blocks. Zero means 1 MiB.
	MaxBody int64
	// MaxAnswer is up to how many bytes an answer of known length is read before
	// it is returned, so that one which is cut off is asked for again. Zero means
	// 1 MiB.
	MaxAnswer int64
}

func (c Config) withDefaults() (Config, error) {
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	c.MaxAge = cmp.Or(c.MaxAge, DefaultMaxAge)
	c.Header = http.CanonicalHeaderKey(cmp.Or(c.Header, "Idempotency-Key"))
	c.Attempts = cmp.Or(c.Attempts, DefaultAttempts)
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, DefaultAttemptTimeout)
	c.Total = cmp.Or(c.Total, DefaultTotal)
	c.MinWait = cmp.Or(c.MinWait, DefaultMinWait)
	c.MaxWait = cmp.Or(c.MaxWait, max(DefaultMaxWait, c.MinWait))
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, DefaultMaxAnswer)
	c.Methods = slices.Clone(c.Methods)
	if len(c.Methods) == 0 {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	return c, errors.Join(
		within("Total", c.Total, time.Millisecond, time.Hour),
		within("MaxAge", c.MaxAge, 2*c.Total, 10*365*24*time.Hour),
		within("Attempts", c.Attempts, 1, 1000),
		within("AttemptTimeout", c.AttemptTimeout, time.Millisecond, time.Hour),
		within("MinWait", c.MinWait, time.Millisecond, time.Hour),
		within("MaxWait", c.MaxWait, c.MinWait, time.Hour),
		within("MaxBody", c.MaxBody, 1, 1<<30),
		within("MaxAnswer", c.MaxAnswer, 1, 1<<30),
		validHeader(c.Header), validMethods(c.Methods),
	)
}

// validHeader asks for fewer characters than a field name may have: no key
// travels in a stranger one.
func validHeader(name string) error {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_", c) {
			return fmt.Errorf("idemclient: Header is %q; it must be letters, digits, hyphens and underscores", name)
		}
	}
	return nil
}

func validMethods(methods []string) error {
	for _, m := range methods {
		switch m {
		case http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
		default:
			return fmt.Errorf("idemclient: Methods holds %q; only POST, PATCH, PUT and DELETE can be guarded", m)
		}
	}
	return nil
}

func within[T cmp.Ordered](name string, got, low, high T) error {
	if got < low || got > high {
		return fmt.Errorf("idemclient: %s is %v; it must be from %v to %v", name, got, low, high)
	}
	return nil
}
