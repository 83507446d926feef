//go:build unix

package bank

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the file for this process alone, until it closes it or ends,
// however it ends. It reports false if another has it.
func lockFile(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
