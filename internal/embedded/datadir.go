//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// passwordFile is the file in a data directory made here that holds the
// superuser's password. It is written last, so it also says that the cluster is whole.
const passwordFile = "idem.password"

// dataDir is a data directory that we have locked.
type dataDir struct {
	path  string
	major int  // PostgreSQL's major version, 0 while there is no cluster in it
	kept  bool // not ours to remove
	lock  *os.File
}

// openDataDir locks the data directory at path, made if absent, or one in the
// run directory if path is empty.
func openDataDir(path string, run *runDir, who *account) (*dataDir, error) {
	d := &dataDir{path: filepath.Join(run.path, "data"), kept: path != ""}
	if d.kept {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		d.path = abs
	}
	if err := d.make(who); err != nil {
		return nil, err
	}
	lock, err := lockDir(d.path)
	if errors.Is(err, errLocked) {
		return nil, d.inUse()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDataDir, err)
	}
	d.lock = lock
	if err := d.inspect(who); err != nil {
		return nil, errors.Join(err, d.unlock())
	}
	return d, nil
}

// make makes the directory if it is absent.
func (d *dataDir) make(who *account) error {
	err := os.Mkdir(d.path, 0o700)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(d.path), 0o755); err == nil {
			err = os.Mkdir(d.path, 0o700)
		}
	}
	if err == nil {
		err = who.own(d.path)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: %w", ErrDataDir, err)
	}
	if barrier := who.barrier(filepath.Dir(d.path)); barrier != "" {
		return fmt.Errorf("%w: the server runs as user %s, who may not enter %s: choose a data directory elsewhere, or chmod o+x %s",
			ErrDataDir, who.name, barrier, barrier)
	}
	return nil
}

// waitForDead waits for a server that is there though we have the lock: its
// program is dead, and it will end soon.
func (d *dataDir) waitForDead(ctx context.Context) error {
	deadline := time.NewTimer(immediateWait)
	defer deadline.Stop()
	for {
		if _, alive := postmasterOf(d.path); !alive {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("embedded: %w", ctx.Err())
		case <-deadline.C:
			return d.inUse()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d *dataDir) inUse() error {
	if p, alive := postmasterOf(d.path); alive {
		return fmt.Errorf("%w: %s is served by the PostgreSQL with pid %d: stop that or choose another data directory", ErrInUse, d.path, p.pid)
	}
	return fmt.Errorf("%w: another program is opening or closing %s: wait or choose another data directory", ErrInUse, d.path)
}

// inspect finds out what is in the directory. It may be nothing, or a whole
// cluster made here.
func (d *dataDir) inspect(who *account) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDataDir, err)
	}
	if len(entries) == 0 {
		if err := who.own(d.path); err != nil {
			return fmt.Errorf("%w: %w", ErrDataDir, err)
		}
		return nil
	}
	content, err := os.ReadFile(filepath.Join(d.path, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is not empty and holds no PostgreSQL cluster: choose another data directory", ErrDataDir, d.path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDataDir, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || major <= 0 {
		return fmt.Errorf("%w: %s: PG_VERSION names no version: choose another data directory", ErrDataDir, d.path)
	}
	d.major = major
	return nil
}

func (d *dataDir) unlock() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// readPassword returns the superuser's password of the cluster in dir.
func readPassword(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, passwordFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: the cluster in %s was not made by this program, or not to the end: choose another data directory", ErrDataDir, dir)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDataDir, err)
	}
	return strings.TrimSpace(string(content)), nil
}

// removeStalePid removes a postmaster.pid whose number now belongs to another
// program, which PostgreSQL would take for a living server. With any other
// leftover it copes by itself.
func (d *dataDir) removeStalePid() error {
	p, server := postmasterOf(d.path)
	if server || p.pid == 0 || !alive(p.pid) {
		return nil
	}
	if err := os.Remove(filepath.Join(d.path, "postmaster.pid")); err != nil {
		return fmt.Errorf("%w: %w", ErrDataDir, err)
	}
	return nil
}
