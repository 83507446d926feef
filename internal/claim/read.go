package claim

import (
	"errors"
	"strings"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// stored is a key as key_read, and beside the claim key_lease, return it. Without one
// key_lease returns nulls.
type stored struct {
	fence       pgtype.UUID
	state       pgtype.Text
	version     pgtype.Int2
	sum         []byte
	answer      idem.Answer
	headers     [][]byte
	created     pgtype.Timestamptz
	expires     pgtype.Timestamptz // infinity, if unknown
	over        pgtype.Bool
	entombed    pgtype.Bool
	live, bound bool
	by          string // the request that wrote it
}

// columns are where a row is scanned to.
func (r *stored) columns() []any {
	return []any{&r.fence, &r.state, &r.version, &r.sum, &r.answer.Status, &r.headers, &r.answer.Body,
		&r.answer.Reference, &r.created, &r.expires, &r.over, &r.entombed, &r.live, &r.bound, &r.by}
}

// read scans what key_read found and judges it for in; nil if nothing was found.
func read(from pgx.Row, in Intent) (*Found, error) {
	var r stored
	err := from.Scan(r.columns()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.judge(in), nil
}

// judge is what a row means for in. What was abandoned on a lease is only taken over
// on a lease: elsewhere it is unknown if an effect of it has started, and free if
// not.
func (r *stored) judge(in Intent) *Found {
	f := &Found{Answer: r.answer, By: requestOf(r.by), fence: r.fence.Bytes, over: r.over.Bool, bound: r.bound}
	f.Answer.Header = headerFields(r.headers)
	f.Answer.CreatedAt, f.Answer.ExpiresAt = r.created.Time, r.expires.Time
	f.same = in.Same(idem.Fingerprint{Version: r.version.Int16, Sum: r.sum})
	f.Outcome = outcomeOf(r.state.String, r.entombed.Bool, f.same, r.live, r.bound)
	if f.Outcome == Abandoned && in.Lease == 0 {
		f.over = f.over || !f.bound
		f.Outcome = Unknown
	}
	return f
}

// requestOf reads a request as it is told in one column: pgx allocates for more than 16 of
// them, and whoever was neither traced nor had an id is not to cost that. Neither part has
// a space.
func requestOf(by string) Request {
	if traceparent, id, traced := strings.Cut(by, " "); traced {
		return Request{ID: id, Traceparent: traceparent}
	}
	return Request{ID: by}
}

func outcomeOf(state string, entombed, same, live, bound bool) Outcome {
	claimed := state == "claimed"
	switch {
	case claimed && !live && (same || !bound):
		return Abandoned
	case !same:
		return Mismatch
	case claimed:
		return InFlight
	case state == "unknown":
		return Unknown
	case entombed:
		return Entombed
	case state == "withheld":
		return Withheld
	default:
		return Answered
	}
}

// headerFields reads name, value, name, value.
func headerFields(pairs [][]byte) []idem.HeaderField {
	fields := make([]idem.HeaderField, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		fields = append(fields, idem.HeaderField{Name: string(pairs[i]), Value: string(pairs[i+1])})
	}
	return fields
}
