package admin

import (
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// State is what a row of idem.idempotency_keys stands for.
type State string

// The states of a remembered key.
const (
	StateClaimed   State = "claimed"   // its request works on it, on a lease, or has left it
	StateAnswered  State = "answered"  // its answer is replayed until ExpiresAt
	StateWithheld  State = "withheld"  // carried out; the answer was too large to store
	StateUnknown   State = "unknown"   // committed or not: an operator must settle it
	StateTombstone State = "tombstone" // the answer's time is over, the bare key is remembered
)

// States returns the states of a remembered key.
func States() []State {
	return []State{StateClaimed, StateAnswered, StateWithheld, StateUnknown, StateTombstone}
}

// Key is what is remembered of one key. Times are the database's.
type Key struct {
	Scope string
	Key   string
	State State

	// Fingerprint is the SHA-256 of what makes the request the same, and
	// FingerprintVersion how it was computed: 1 raw, 2 canonical JSON, 3 the
	// program's own function.
	Fingerprint        []byte
	FingerprintVersion int

	// Status is the HTTP status that was answered; 0 where none is remembered.
	Status int
	// Header is the stored part of the answer's header, in order. Only ShowKey
	// reads it.
	Header []idem.HeaderField
	// Body is the stored body, which may hold what only the caller may see.
	// Only ShowKey reads it.
	Body []byte
	// BodyBytes is the stored body's length.
	BodyBytes int64
	// Reference is what is remembered instead of a body, if that is so.
	Reference string

	CreatedAt time.Time
	// ExpiresAt is when the state's time is over; zero means never.
	ExpiresAt time.Time
	// TombstoneUntil is until when the bare key outlives its answer; zero means
	// not at all, or that it does so already.
	TombstoneUntil time.Time
	// Expired reports that ExpiresAt had passed by the database's clock when
	// the key was read. Such a key may still be there because no sweep has come
	// by, or because of TombstoneUntil.
	Expired bool
	// Over reports that the time was over and neither a tombstone nor, of a claim,
	// an unsettled effect was left: the next request with the key runs as new,
	// whether the row is still there or not.
	Over bool
	// Fence is the mark of the claim that wrote the row.
	Fence string
	// LeaseUntil is until when the owner of a claimed key is trusted to live; zero
	// in any other state, and once the owner has ended the lease itself. Live reports that this had not passed when the key was
	// read: a claim that is not live was abandoned, or its owner is late.
	LeaseUntil time.Time
	Live       bool
	// Bound reports that an effect of the request has started, so that the key
	// belongs to this very request for good.
	Bound bool
	// Outcome is what became of what the request wrote to the database.
	Outcome Outcome
	// RequestID is the id by which logs know the request that wrote the row, and
	// Traceparent its trace context (W3C); empty if it had none.
	RequestID, Traceparent string
}

// nullable are the columns of a key that may be null.
type nullable struct {
	expires, tombstone, lease *time.Time
	committed, bound          *bool
	fence                     uuid.UUID
}

// columns are where the columns that all statements share are scanned to.
func (k *Key) columns(n *nullable) []any {
	return []any{
		&k.Scope, &k.Key, &k.State, &k.FingerprintVersion, &k.Fingerprint,
		&k.Status, &k.BodyBytes, &k.Reference,
		&k.CreatedAt, &n.expires, &n.tombstone, &k.Expired, &k.Over, &n.committed,
		&n.lease, &k.Live, &n.bound, &n.fence, &k.RequestID, &k.Traceparent,
	}
}

// scanKey reads one row of keys_list and keys_find.
func scanKey(row pgx.CollectableRow) (Key, error) {
	var k Key
	var n nullable
	err := row.Scan(k.columns(&n)...)
	k.set(n)
	return k, err
}

// scanWholeKey reads one row of key_show.
func scanWholeKey(row pgx.CollectableRow) (Key, error) {
	var k Key
	var n nullable
	var lines [][]byte
	err := row.Scan(append(k.columns(&n), &lines, &k.Body)...)
	k.set(n)
	for i := 0; i+1 < len(lines); i += 2 {
		k.Header = append(k.Header, idem.HeaderField{Name: string(lines[i]), Value: string(lines[i+1])})
	}
	return k, err
}

func (k *Key) set(n nullable) {
	k.ExpiresAt, k.TombstoneUntil, k.LeaseUntil = orZero(n.expires), orZero(n.tombstone), orZero(n.lease)
	k.Outcome = outcomeOf(n.committed)
	k.Bound = n.bound != nil && *n.bound
	k.Fence = n.fence.String()
}

// orZero is the zero time for SQL's null.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
