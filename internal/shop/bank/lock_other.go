//go:build !unix

package bank

import (
	"errors"
	"os"
)

// lockFile refuses: the demo needs a Unix. The client does not, which is why this
// package builds everywhere.
func lockFile(*os.File) (bool, error) { return false, errors.ErrUnsupported }
