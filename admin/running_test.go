//go:build !idem_nolocks

package admin_test

import (
	"testing"

	"github.com/idem-go/idem/admin"
)

// locks says whether claims take locks.
const locks = true

// whileRunning is how a release of a running key ends: its lock is seen.
func whileRunning(err error) error { return err }

// wantRunning compares the story of a key that is running.
func wantRunning(t *testing.T, s admin.Story, err error) {
	t.Helper()
	if err != nil || s.Owner == nil || s.Owner.PID == 0 || s.Owner.Since.IsZero() {
		t.Fatalf("got %+v and error %v, want its owner", s, err)
	}
	if s.Remembered != nil || s.Retry != admin.RetryWaits || s.Outcome != admin.OutcomeUnknown || s.NewKey {
		t.Errorf("got %+v, want a key that waits, of unknown outcome, and no new one", s)
	}
}
