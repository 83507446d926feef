package idemhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// The default limits. Every one can be changed in Config or per Route.
const (
	// DefaultWait is how long a duplicate waits for the first request: longer
	// than nearly every handler, shorter than most clients' timeouts.
	DefaultWait = 5 * time.Second
	// DefaultLimit is how long a handler may run, as long as common proxies
	// wait.
	DefaultLimit = 30 * time.Second
	// DefaultMaxBody bounds a request's body in bytes: it is held in memory to
	// be fingerprinted whole and to be run again.
	DefaultMaxBody = 1 << 20
	// DefaultMaxStored bounds an answer that is remembered, in bytes.
	DefaultMaxStored = 1 << 20
	// DefaultMaxHeld bounds an answer that is held until its commit, in bytes.
	DefaultMaxHeld = 8 << 20
	// DefaultMaxBuffers bounds all bodies and held answers of a guard at one
	// time, in bytes.
	DefaultMaxBuffers = 64 << 20
	// DefaultMaxWaiters bounds the duplicates that wait for one request.
	DefaultMaxWaiters = 1000
	// DefaultLease is how long a claim on a lease is held when its owner is gone: its
	// renewals may be late by two thirds of it.
	DefaultLease = 30 * time.Second
	// DefaultTombstone is how long a bare key is kept after its answer's time
	// is over, where a route asks for it without saying how long.
	DefaultTombstone = 90 * 24 * time.Hour
)

// ScopeFunc says whom a request's key belongs to: the authenticated principal,
// an account, a merchant. It runs for every request, before anything else, also
// before a replay, so it is where authorization belongs. An error that wraps
// idem.ErrUnavailable or a context error is answered 503, any other 401; an
// empty scope without an error is a 500, since it would be shared by strangers.
type ScopeFunc func(*http.Request) (string, error)

// Public returns a scope function for an endpoint without principals: all
// callers share the scope "public", and a key is as secret as its randomness
// makes it. Saying so is required, since a shared scope by accident hands one
// caller's answer to another.
func Public() ScopeFunc {
	return func(*http.Request) (string, error) { return "public", nil }
}

// Config is what all routes of a guard share. Its zero value lacks only Scope.
type Config struct {
	// Scope says whom a key belongs to. Required; see Public.
	Scope ScopeFunc
	// Profile chooses the statuses and problems that clients see: Article or
	// IETF. Empty means Article.
	Profile Profile
	// KeyHeaders are the header names that carry a key; all of them are
	// counted together, so that two keys are never silently one. Empty means
	// Idempotency-Key alone.
	KeyHeaders []string
	// ReplayHeaders are names added to those that are replayed. Set-Cookie,
	// Date, authentication, CORS, rate-limit, trace and hop-by-hop headers are
	// refused.
	ReplayHeaders []string
	// Wait is how long a duplicate waits for the first request before it is
	// told that the request is in flight. Zero means 5 s, negative means not at
	// all; at most 5 minutes.
	Wait time.Duration
	// MaxBuffers bounds the bytes of all bodies and answers held at one time;
	// beyond it requests are answered 503. Zero means 64 MiB.
	MaxBuffers int64
	// MaxWaiters bounds the duplicates waiting for one request; further ones
	// are told at once that it is in flight. Zero means 1,000.
	MaxWaiters int
	// RequestID tells the id by which logs know a request. It is remembered with the key,
	// and the event of a repeat names that of the request whose outcome it was told
	// (idem.Event.FirstRequest). Longer than MaxRequestID or not visible ASCII, it counts as
	// none. Nil means HeaderRequestID.
	RequestID func(*http.Request) string
}

func (c Config) withDefaults() (Config, error) {
	c.KeyHeaders = slices.Clone(c.KeyHeaders)
	c.Profile = cmp.Or(c.Profile, Article)
	c.Wait = max(cmp.Or(c.Wait, DefaultWait), 0)
	c.MaxBuffers = cmp.Or(c.MaxBuffers, DefaultMaxBuffers)
	c.MaxWaiters = cmp.Or(c.MaxWaiters, DefaultMaxWaiters)
	if c.RequestID == nil {
		c.RequestID = HeaderRequestID
	}
	if len(c.KeyHeaders) == 0 {
		c.KeyHeaders = []string{"Idempotency-Key"}
	}
	var faults []error
	if c.Scope == nil {
		faults = append(faults, errors.New("idemhttp: Config.Scope is required: without it one caller's key would "+
			"give another caller's answer; return the authenticated principal, or use idemhttp.Public() for a public endpoint"))
	}
	if _, ok := profiles[c.Profile]; !ok {
		faults = append(faults, fmt.Errorf("idemhttp: Config.Profile is %q; use idemhttp.Article or idemhttp.IETF", c.Profile))
	}
	faults = append(faults,
		within("Config.Wait", c.Wait, 0, 5*time.Minute),
		within("Config.MaxBuffers", c.MaxBuffers, 1, 1<<40),
		within("Config.MaxWaiters", c.MaxWaiters, 1, 1_000_000),
		validKeyHeaders(c.KeyHeaders), validReplayHeaders("Config.ReplayHeaders", c.ReplayHeaders))
	return c, errors.Join(faults...)
}

// Route is the policy of one guarded route. Only Name is required.
type Route struct {
	// Name is the route's label in metrics and logs and must be unique within
	// a guard, for example "POST /orders". At most 100 bytes.
	Name string
	// TTL is how long an answer is replayed, measured from the answer. It must
	// exceed the longest time over which any client retries: a bug that ships
	// on Friday is retried on Monday. Zero means idem.DefaultTTL (72 h); from
	// 1 minute to 10 years. See idem.Simple and idem.Orders.
	TTL time.Duration
	// Tombstone keeps the bare key for this long after TTL, to answer
	// answer-expired instead of running a very late retry as new. Zero keeps
	// none in the transaction, and DefaultTombstone, 90 days, on a lease.
	Tombstone time.Duration
	// Lease makes the route's requests run on a lease, for work that leaves the
	// database: the claim is committed first, and held for this long beyond the last
	// sign of its owner's life (DefaultLease is 30 s). Each call of another system is
	// an idem.Call; idem.Tx is the one final transaction, which begins with its first
	// statement and commits together with the answer. Once an effect has started,
	// every answer below 500 is remembered; any other, a panic or a crash leaves the
	// key to the next retry of the same request. Zero runs requests in the
	// transaction; from 1 second to 10 minutes.
	Lease time.Duration
	// Limit is how long the handler may run; then the request is answered 503
	// and rolled back. Zero means 30 s; from 10 ms to 10 minutes.
	Limit time.Duration
	// Wait overrides Config.Wait for this route if it is not zero.
	Wait time.Duration
	// MaxBody bounds the request's body in bytes. Zero means 1 MiB.
	MaxBody int64
	// MaxStored bounds the body of a remembered answer in bytes: the first
	// caller gets a larger one, repeats get answer-withheld. Zero means 1 MiB.
	MaxStored int
	// MaxHeld bounds the body of any answer in bytes: a larger one is rolled
	// back and answered 500. Zero means 8 MiB.
	MaxHeld int
	// Methods are the methods that the route guards. On others a key changes
	// nothing. Empty means POST and PATCH; PUT and DELETE may be added.
	Methods []string
	// KeyOptional lets a request without a key run unguarded: in a transaction
	// of its own, answered with "Idempotency-Status: unguarded".
	KeyOptional bool
	// KeyFormat refuses keys that it returns an error for, for example
	// UUIDs. The error's text is shown to the client. Nil accepts every valid
	// key.
	KeyFormat func(key string) error
	// KeyFrom takes keys from elsewhere than the header, such as a hidden form
	// field. All values found, in headers and here, are counted together. Its
	// request has a body of its own to read.
	KeyFrom func(*http.Request) []string
	// CanonicalJSON makes two JSON bodies the same if their canonical forms
	// (RFC 8785) are: the order of keys, white space and the spelling of numbers
	// do not count. A body that is not valid JSON, that repeats a key or holds a
	// number which a double cannot keep exactly is answered 400. Bodies of other
	// media types are compared byte for byte.
	CanonicalJSON bool
	// Fingerprint is the program's own idea of "the same request": its bytes
	// stand for everything but method and path. An error is answered 400; its
	// text is shown to the client. Nil means media type, query, content
	// encoding and the body's bytes.
	Fingerprint func(r *http.Request, body []byte) ([]byte, error)
	// FingerprintHeaders are header names that belong to the fingerprint, for
	// example an API version.
	FingerprintHeaders []string
	// Policies overrides what happens with the handler's writes and its answer,
	// by status. See DefaultPolicy for what applies to the others.
	Policies map[int]Policy
	// LazyClaim lets the claim travel with the handler's first statement, for
	// speed. Then the handler's Go code before that statement runs on a repeat,
	// too, so it must have no effects; that statement and every later one return
	// idem.ErrAnswered, what they write is dropped, and the stored answer is
	// sent whatever the handler answers. It is ignored above read committed.
	LazyClaim bool
	// InFlight202 answers 202 instead of the profile's status while the first
	// request is still running.
	InFlight202 bool
	// ReplayCheck re-checks, before every replay, the caller's right to this
	// very answer, as the handler would have. An error is answered 403, one
	// that wraps idem.ErrUnavailable or a context error 503.
	ReplayCheck func(*http.Request, idem.Answer) error
	// Replay says what is remembered of an answer: ReplayBytes, the zero value,
	// or ReplayResource.
	Replay Replay
	// Fetch writes the resource that ref names, as it is now, for a repeat on a
	// route with ReplayResource. The stored header is already set and the stored
	// status is used unless Fetch writes another, such as 410.
	Fetch func(w http.ResponseWriter, r *http.Request, ref string)
	// TxOptions chooses the isolation level of the handler's transaction; no
	// other field may be set. Empty means read committed, whatever the
	// database's default is.
	TxOptions pgx.TxOptions
}

func (rt Route) withDefaults(c Config) (Route, error) {
	// The caller's maps and slices stay the caller's.
	rt.Policies = maps.Clone(rt.Policies)
	rt.Methods = slices.Clone(rt.Methods)
	rt.FingerprintHeaders = slices.Clone(rt.FingerprintHeaders)
	rt.TTL = cmp.Or(rt.TTL, idem.DefaultTTL)
	rt.Limit = cmp.Or(rt.Limit, DefaultLimit)
	if rt.Lease != 0 {
		rt.Tombstone = cmp.Or(rt.Tombstone, DefaultTombstone)
	}
	rt.Wait = max(cmp.Or(rt.Wait, c.Wait), 0)
	rt.MaxBody = cmp.Or(rt.MaxBody, DefaultMaxBody)
	rt.MaxStored = cmp.Or(rt.MaxStored, DefaultMaxStored)
	rt.MaxHeld = cmp.Or(rt.MaxHeld, DefaultMaxHeld)
	if len(rt.Methods) == 0 {
		rt.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	faults := []error{
		within("Route.Name (its length in bytes)", len(rt.Name), 1, 100),
		within("Route.TTL", rt.TTL, time.Minute, 10*365*24*time.Hour),
		within("Route.Tombstone", rt.Tombstone, 0, 10*365*24*time.Hour),
		within("Route.Limit", rt.Limit, 10*time.Millisecond, 10*time.Minute),
		within("Route.Wait", rt.Wait, 0, 5*time.Minute),
		within("Route.MaxBody", rt.MaxBody, 1, c.MaxBuffers),
		within("Route.MaxHeld", int64(rt.MaxHeld), 1, c.MaxBuffers),
		within("Route.MaxStored", rt.MaxStored, 1, rt.MaxHeld),
		validMethods(rt.Methods), validPolicies(rt.Policies), validTxOptions(rt.TxOptions),
		validFingerprintHeaders(rt.FingerprintHeaders), rt.validReplay(), rt.validFingerprint(), rt.validLease(),
	}
	return rt, errors.Join(faults...)
}

func validMethods(methods []string) error {
	var faults []error
	for _, m := range methods {
		switch m {
		case http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
		default:
			faults = append(faults, fmt.Errorf("idemhttp: Route.Methods holds %q; only POST, PATCH, PUT and DELETE can be guarded", m))
		}
	}
	return errors.Join(faults...)
}

func validTxOptions(o pgx.TxOptions) error {
	level := o.IsoLevel
	o.IsoLevel = ""
	var faults []error
	if o != (pgx.TxOptions{}) {
		faults = append(faults, errors.New("idemhttp: Route.TxOptions may set IsoLevel only; the guard begins and commits"))
	}
	switch level {
	case "", pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable:
	default:
		faults = append(faults, fmt.Errorf("idemhttp: Route.TxOptions.IsoLevel is %q; use pgx.ReadCommitted, pgx.RepeatableRead or pgx.Serializable", level))
	}
	return errors.Join(faults...)
}

func (rt Route) validReplay() error {
	switch {
	case rt.Replay != ReplayBytes && rt.Replay != ReplayResource:
		return fmt.Errorf("idemhttp: Route.Replay is %q; use idemhttp.ReplayBytes or idemhttp.ReplayResource", rt.Replay)
	case rt.Replay == ReplayResource && rt.Fetch == nil:
		return errors.New("idemhttp: Route.Fetch is required with ReplayResource: a repeat has no stored body to send")
	case rt.Replay != ReplayResource && rt.Fetch != nil:
		return errors.New("idemhttp: Route.Fetch needs Route.Replay: idemhttp.ReplayResource")
	}
	return nil
}

func (rt Route) validLease() error {
	switch {
	case rt.Lease == 0:
		return nil
	case rt.LazyClaim:
		return errors.New("idemhttp: Route.Lease and Route.LazyClaim exclude each other: a claim on a lease is committed before the handler")
	case rt.KeyOptional:
		return errors.New("idemhttp: Route.Lease and Route.KeyOptional exclude each other: without a key nothing keeps an effect's request apart")
	}
	return within("Route.Lease", rt.Lease, time.Second, 10*time.Minute)
}

func (rt Route) validFingerprint() error {
	if rt.CanonicalJSON && rt.Fingerprint != nil {
		return errors.New("idemhttp: Route.CanonicalJSON and Route.Fingerprint exclude each other")
	}
	return nil
}

func within[T cmp.Ordered](name string, got, low, high T) error {
	if got < low || got > high {
		return fmt.Errorf("idemhttp: %s is %v; it must be from %v to %v", name, got, low, high)
	}
	return nil
}

// temporary reports whether an error of the program's own check means "ask
// again" rather than "no".
func temporary(err error) bool {
	return errors.Is(err, idem.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
