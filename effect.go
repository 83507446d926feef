package idem

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/jsontext"
)

const (
	// MaxEffectKey is the longest key of an effect in bytes. It leaves room for the
	// key of a request behind a name.
	MaxEffectKey = 512
	// MaxInput bounds what an effect is to do, encoded as JSON, in bytes. Only its
	// digest is stored.
	MaxInput = 1 << 20
	// MaxResult bounds what an effect has come to, encoded as JSON, in bytes. It is
	// stored as long as the effect is, which is for ever.
	MaxResult = 1 << 20
	// DefaultTimeout is how long one call of an effect may take.
	DefaultTimeout = 10 * time.Second
	// MaxWindow bounds the window of Keyed.
	MaxWindow = 10 * 365 * 24 * time.Hour
)

// Effect names a thing that must happen once, whoever runs it again, and says what
// is known of the other side. It is a value and safe for concurrent use.
type Effect struct {
	// Scope says whose money it is: "shop", an account, a merchant. Required, by the
	// rules of ValidScope. The same effect from a request and from a task has the
	// same scope.
	Scope string
	// Key names the effect within its scope: "charge:payment:1". Required: 1 to
	// MaxEffectKey bytes of visible ASCII.
	Key string
	// Input is what the effect is to do, compared by the SHA-256 of its JSON. A
	// repeat with another is ErrMismatch. Nil says nothing. Not more than MaxInput.
	Input any

	// Provider says what the other side of a Call promises. The zero value promises
	// nothing: such a call is never repeated by itself. See Keyed. Apply ignores it.
	Provider Provider
	// Timeout is how long one call may take. Zero means DefaultTimeout. A call never
	// takes longer than its handler may. Apply ignores it.
	Timeout time.Duration
	// Reconcile asks the other side, by the downstream key, what has become of a call
	// whose outcome is unknown. It is called when a Call finds such an effect, at most
	// once in it, and has Timeout of its own. An error, or evidence of nothing, leaves
	// it unknown. Absence counts only if the last call could not be under way any more
	// when it was asked for. Nil leaves it to an operator (`idem effects
	// settle`). Apply ignores it.
	Reconcile func(ctx context.Context, downstreamKey string) (Evidence, error)
}

// Provider is what the other side of a Call promises of keys.
type Provider struct {
	window time.Duration
	keyed  bool
}

// Keyed says that the other side honours a downstream key for window: within it, the
// same key again finds the outcome of the first call instead of making another. The
// window counts from the intention and must be below what the provider keeps keys
// for, with room for the time that a call takes. From 1 second to MaxWindow; any
// other makes Call fail with ErrEffectInvalid.
func Keyed(window time.Duration) Provider { return Provider{window: window, keyed: true} }

// Evidence is what a Reconcile function has learnt. The zero value says that nothing
// was to be learnt.
type Evidence struct {
	found  status
	result any
}

// Found is the evidence that the effect was applied, with the result that Call is to
// return: what the function given to Call would have returned.
func Found(result any) Evidence { return Evidence{found: applied, result: result} }

// Missing is the evidence that the effect was not applied.
func Missing() Evidence { return Evidence{found: absent} }

// NotApplied says, as the error of a function given to Call, that this call has
// applied nothing, with proof: the other side said so, or it was never reached. Call
// returns an error for which errors.Is holds with err, and the effect may be started
// again. Of an earlier call of the same effect, whose outcome is unknown, it proves
// nothing: then it counts as any other error, and the call is repeated. It may be
// wrapped, but not joined with others, which may say something else. Without proof
// return any other error, which means unknown. NotApplied(nil) is nil.
func NotApplied(err error) error {
	if err == nil {
		return nil
	}
	return &notApplied{err}
}

type notApplied struct{ cause error }

func (e *notApplied) Error() string { return "not applied: " + e.cause.Error() }
func (e *notApplied) Unwrap() error { return e.cause }

// proves reports whether err is a NotApplied, or wraps one and nothing else.
func proves(err error) bool {
	for err != nil {
		if _, proof := err.(*notApplied); proof {
			return true
		}
		one, wraps := err.(interface{ Unwrap() error })
		if !wraps {
			return false
		}
		err = one.Unwrap()
	}
	return false
}

// status is what has become of an effect, as stored.
type status string

// The states of an effect. docs/states.md draws them.
const (
	started status = "started"
	applied status = "applied"
	unknown status = "unknown"
	absent  status = "absent"
)

// valid reports every fault of an effect at once; the errors wrap ErrEffectInvalid.
func (e Effect) valid(call bool) error {
	faults := []error{ValidScope(e.Scope), validEffectKey(e.Key)}
	if call {
		if e.Provider.keyed && (e.Provider.window < time.Second || e.Provider.window > MaxWindow) {
			faults = append(faults, fmt.Errorf("Keyed(%v): the window is how long the provider honours a key; it must be from 1s to %v", e.Provider.window, MaxWindow))
		}
		if e.Timeout < 0 {
			faults = append(faults, fmt.Errorf("Effect.Timeout is %v; zero means %v", e.Timeout, DefaultTimeout))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrEffectInvalid, err)
	}
	return nil
}

func validEffectKey(key string) error {
	if key == "" || len(key) > MaxEffectKey {
		return fmt.Errorf("Effect.Key has %d bytes; it must have 1 to %d", len(key), MaxEffectKey)
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return fmt.Errorf("Effect.Key: byte %d is not visible ASCII; name the effect by words and ids, such as charge:payment:1", i+1)
		}
	}
	return nil
}

// input is the digest of what the effect is to do; nil if nothing was said.
func (e Effect) input() ([]byte, error) {
	if e.Input == nil {
		return nil, nil
	}
	encoded, err := encoded("Effect.Input", e.Input, MaxInput)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	return sum[:], nil
}

// encoded is v as JSON. The error wraps ErrEffectInvalid.
func encoded(name string, v any, most int) ([]byte, error) {
	b, err := jsontext.Encode(name, v, most)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEffectInvalid, err)
	}
	return b, nil
}

// recordable is a result as it is recorded: encoded, and known to be read again.
func recordable[R any](result R) ([]byte, error) {
	b, err := encoded("the result", result, MaxResult)
	if err != nil {
		return nil, err
	}
	var again R
	if err := json.Unmarshal(b, &again); err != nil {
		return nil, fmt.Errorf("%w: the result can be encoded and not be read again as a %T: %w; return a type that encoding/json can do both with", ErrEffectInvalid, result, jsontext.Discreet(err))
	}
	return b, nil
}

// encodable reports early that no value of R could be stored.
func encodable[R any]() error {
	var zero R
	_, err := json.Marshal(zero)
	var unsupported *json.UnsupportedTypeError
	if errors.As(err, &unsupported) {
		return fmt.Errorf("%w: a result of type %T cannot be encoded: %w; return a type that encoding/json can marshal", ErrEffectInvalid, zero, err)
	}
	return nil
}

// decoded is a recorded result as an R.
func decoded[R any](e Effect, result []byte) (r R, err error) {
	if err := json.Unmarshal(result, &r); err != nil {
		return r, fmt.Errorf("%w: the recorded result of %s is no %T: %w; the effect has been applied, so read its result as the type that it had", ErrEffectInvalid, e.Key, r, jsontext.Discreet(err))
	}
	return r, nil
}

// downstreamKey is the key that every call of an effect sends: a UUID of version 8
// (RFC 9562, section 5.8), made of a digest of the database's id, scope and key, each
// framed by its length.
func downstreamKey(instance uuid.UUID, scope, key string) string {
	digest := sha256.New()
	for _, part := range [][]byte{instance[:], []byte(scope), []byte(key)} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		digest.Write(length[:])
		digest.Write(part)
	}
	id := uuid.UUID(digest.Sum(nil)[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
