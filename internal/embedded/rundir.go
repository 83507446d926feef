//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// runDirPrefix starts the name of every run directory.
const runDirPrefix = "idem-postgres-"

// runDir is the temporary directory of one server: its log, and its data
// unless they are kept elsewhere. We hold a lock on it for as long as we live,
// so that others can tell it from one whose program is dead.
type runDir struct {
	path string
	lock *os.File
}

// newRunDir makes a run directory that the account can reach, in memory if that is
// asked for and there is room, and removes those of dead programs beside it.
func newRunDir(who *account, inMemory bool) (*runDir, error) {
	parent, err := tempParent(who, inMemory)
	if err != nil {
		return nil, err
	}
	sweepRunDirs(parent, who)
	for {
		path, err := os.MkdirTemp(parent, runDirPrefix)
		if err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		lock, err := lockDir(path)
		if err == nil && sameDir(lock, path) {
			if err := who.own(path); err != nil {
				return nil, errors.Join(fmt.Errorf("embedded: %w", err), os.Remove(path), lock.Close())
			}
			return &runDir{path: path, lock: lock}, nil
		}
		// Somebody's sweep was faster than our lock: it removes this one.
		if lock != nil {
			lock.Close()
		}
		if err != nil && !errors.Is(err, errLocked) && !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("embedded: %w", err), os.Remove(path))
		}
	}
}

// tempParent returns a directory for temporary files that the account can reach.
func tempParent(who *account, inMemory bool) (string, error) {
	dirs := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if inMemory && roomy(memoryDir) {
		dirs = append([]string{memoryDir}, dirs...)
	}
	var barriers []string
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("embedded: %w", err)
		}
		barrier := who.barrier(dir)
		if barrier == "" {
			return dir, nil
		}
		barriers = append(barriers, barrier)
	}
	return "", fmt.Errorf("embedded: user %s can enter no temporary directory (closed: %v): set TMPDIR", who.name, barriers)
}

const (
	// memoryDir is where Linux keeps files in memory; elsewhere there is none.
	memoryDir = "/dev/shm"
	// memoryRoom is what must be free there: a cluster takes 40 MB, and a database 8.
	memoryRoom = 2 << 30
)

// roomy reports whether dir is there and has room for a cluster.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && uint64(fs.Bavail)*uint64(fs.Bsize) >= memoryRoom
}

// sweepRunDirs removes what dead programs left. What cannot be removed now is
// left to a later sweep, so errors do not matter.
func sweepRunDirs(parent string, who *account) {
	paths, _ := filepath.Glob(filepath.Join(parent, runDirPrefix+"*"))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || (ownerOf(info) != who.uid && int(ownerOf(info)) != os.Geteuid()) {
			continue
		}
		lock, err := lockDir(path)
		if err != nil {
			continue // its program lives
		}
		// The program is dead, but its server may be stopping just now.
		if _, alive := postmasterOf(filepath.Join(path, "data")); !alive {
			_ = os.RemoveAll(path)
		}
		lock.Close()
	}
}

// remove removes the directory. Backends of a killed server may be writing
// still, so it tries more than once.
func (r *runDir) remove() error {
	var err error
	for range 5 {
		if err = os.RemoveAll(r.path); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.Join(err, r.lock.Close())
}

// errLocked says that another process has the lock.
var errLocked = errors.New("embedded: locked by another process")

// lockDir locks a directory until the file is closed or this process ends.
func lockDir(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return dir, nil
	}
	dir.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: err}
}

func sameDir(dir *os.File, path string) bool {
	open, openErr := dir.Stat()
	named, namedErr := os.Lstat(path)
	return openErr == nil && namedErr == nil && os.SameFile(open, named)
}

// removable is the directory to remove if this process dies: the run directory
// if it holds the data too.
func (r *runDir) removable(data *dataDir) string {
	if data.kept {
		return ""
	}
	return r.path
}

// newLog makes an empty file for the output of a command.
func (r *runDir) newLog(name string) (*os.File, error) {
	log, err := os.OpenFile(filepath.Join(r.path, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return log, nil
}
