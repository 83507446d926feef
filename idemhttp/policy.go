package idemhttp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Policy says what happens with a handler's writes and its answer. Committing
// without remembering cannot be said: it is how a retry charges twice.
type Policy int

const (
	// CommitAndStore commits the writes and remembers the answer.
	CommitAndStore Policy = iota + 1
	// RollbackAndStore rolls the writes back and remembers the answer, both in
	// one transaction: a definite refusal that may depend on state.
	RollbackAndStore
	// RollbackAndFree rolls the writes back and remembers nothing: the key is
	// free, a corrected request is welcome.
	RollbackAndFree
)

// DefaultPolicy is the policy of a status that a route does not name: 2xx and
// 3xx are committed and stored; 402, 409 and 410 are definite refusals, rolled
// back and stored; everything else is rolled back and frees the key.
func DefaultPolicy(status int) Policy {
	switch {
	case status >= 200 && status < 400:
		return CommitAndStore
	case status == 402, status == 409, status == 410:
		return RollbackAndStore
	default:
		return RollbackAndFree
	}
}

func (rt Route) policy(status int) Policy {
	if p, ok := rt.Policies[status]; ok {
		return p
	}
	return DefaultPolicy(status)
}

func validPolicies(policies map[int]Policy) error {
	var faults []error
	for _, status := range slices.Sorted(maps.Keys(policies)) {
		if status < 200 || status > 599 {
			faults = append(faults, fmt.Errorf("idemhttp: Route.Policies names status %d; it must be from 200 to 599", status))
		}
		if p := policies[status]; p < CommitAndStore || p > RollbackAndFree {
			faults = append(faults, fmt.Errorf("idemhttp: Route.Policies[%d] is %d; use CommitAndStore, RollbackAndStore or RollbackAndFree", status, p))
		}
	}
	return errors.Join(faults...)
}

// Replay says what is remembered of an answer.
type Replay string

const (
	// ReplayBytes remembers the answer's bytes: every repeat gets the same.
	ReplayBytes Replay = ""
	// ReplayResource remembers status, header and a reference; a repeat calls
	// the route's Fetch. A stored 2xx or 3xx without idem.Reference is refused
	// as not applied; refusals are remembered as bytes.
	ReplayResource Replay = "resource"
)
