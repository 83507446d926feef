//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// postmaster is what a server says of itself in postmaster.pid.
type postmaster struct {
	pid   int
	port  int
	ready bool
}

// postmasterOf reads postmaster.pid in a data directory and says whether that
// server lives. A process of another program that got its number later does not count.
func postmasterOf(dataDir string) (postmaster, bool) {
	content, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return postmaster{}, false
	}
	// Lines: pid, data directory, start time, port, socket directory, listen
	// address, shared memory key, status.
	lines := strings.Split(string(content), "\n")
	line := func(i int) string {
		if i < len(lines) {
			return strings.TrimSpace(lines[i])
		}
		return ""
	}
	var p postmaster
	if p.pid, err = strconv.Atoi(line(0)); err != nil || p.pid <= 0 {
		return postmaster{}, false
	}
	p.port, _ = strconv.Atoi(line(3)) // absent while it starts
	p.ready = line(7) == "ready"
	return p, alive(p.pid) && isPostgres(p.pid)
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || err == syscall.EPERM
}
