//go:build idem_nolocks

package admin_test

import (
	"errors"
	"testing"

	"github.com/idem-go/idem/admin"
)

// locks says whether claims take locks.
const locks = false

// whileRunning is how a release of a running key ends where claims take no
// locks: there is nothing to see, and nothing to release.
func whileRunning(error) error { return admin.ErrNotFound }

// wantRunning compares the story of such a key: nothing is known yet.
func wantRunning(t *testing.T, s admin.Story, err error) {
	t.Helper()
	if !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("got %+v and error %v, want ErrNotFound", s, err)
	}
}
