package idemhttp

import "net/http"

// Profile is a named choice of statuses for the situations that are not an
// answer of the handler.
type Profile string

const (
	// Article is the default: 409 for another request under the same key, 425
	// while the first one is still running.
	Article Profile = "article"
	// IETF follows draft-ietf-httpapi-idempotency-key-header-07: 422 and 409
	// for the same two.
	IETF Profile = "ietf"
)

// profiles is what each profile changes in the table of problems.
var profiles = map[Profile]map[string]int{
	Article: {},
	IETF: {
		codeMismatch: http.StatusUnprocessableEntity,
		codeInFlight: http.StatusConflict,
	},
}
