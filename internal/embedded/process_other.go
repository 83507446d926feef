//go:build unix && !linux

package embedded

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// isPostgres says whether a living process is a PostgreSQL server, as far as
// we may know.
func isPostgres(pid int) bool {
	name, err := exec.Command("ps", "-p", strconv.Itoa(pid), "-o", "comm=").Output()
	if err != nil {
		return false // no such process
	}
	return strings.HasPrefix(filepath.Base(strings.TrimSpace(string(name))), "post")
}
