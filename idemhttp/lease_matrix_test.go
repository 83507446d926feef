package idemhttp_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

// D2 on a lease, without a call: the claim, and the final transaction with the
// handler's row and the answer.
func TestD2_onALeaseMessageTimesFault(t *testing.T) {
	long(t)
	t.Parallel()
	tryMatrix(t, idemhttp.Route{Lease: kept, Wait: 100 * time.Millisecond})
}
