package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/PID/stat, the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// postgresCPU is the CPU time that a server has used: its postmaster, every
// process that lives, to the nanosecond, and those that have ended, in ticks.
func postgresCPU(dataDir string) (time.Duration, error) {
	content, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	postmaster, _, _ := strings.Cut(string(content), "\n")
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("CPU time is read from /proc, so this needs Linux: %w", err)
	}
	var total time.Duration
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		stat, err := readStat(entry.Name())
		if errors.Is(err, os.ErrNotExist) || entry.Name() != postmaster && stat.parent != postmaster {
			continue
		}
		if entry.Name() == postmaster {
			total += stat.reaped
		}
		used, err := schedstat(entry.Name())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// stat is what /proc/PID/stat says of a process.
type stat struct {
	parent string
	reaped time.Duration // CPU time of its children that have ended
}

func readStat(pid string) (stat, error) {
	content, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, os.ErrNotExist // ESRCH, if it ended in between
	}
	// The name, in parentheses, may hold spaces; fields are counted behind it.
	text := string(content)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return stat{}, os.ErrNotExist
	}
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return stat{parent: fields[1], reaped: time.Duration(user+system) * tick}, nil
}

// schedstat is the time that a process has been on a CPU.
func schedstat(pid string) (time.Duration, error) {
	content, err := os.ReadFile("/proc/" + pid + "/schedstat")
	if err != nil {
		return 0, os.ErrNotExist
	}
	first, _, _ := strings.Cut(string(content), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(n), err
}

// OwnCPU is the user and system time of this process.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only a bad pointer or a bad argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
