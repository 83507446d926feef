//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// cacheDir returns the directory for fetched binaries, made if absent. It is
// ours alone to write, and the server's user can enter it.
func cacheDir(chosen string, who *account) (string, error) {
	dirs := []string{chosen}
	if chosen == "" {
		dirs = usualCacheDirs()
	}
	var errs []error
	for _, dir := range dirs {
		dir, err := useCacheDir(dir, who)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no directory for the fetched binaries: %w", listed(errs))
}

// usualCacheDirs lists the user's own cache directory, then for root, whose
// home is often closed to others, the system's.
func usualCacheDirs() []string {
	var dirs []string
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "idem"))
	}
	if os.Geteuid() == 0 {
		dirs = append(dirs, "/var/cache/idem")
	}
	return dirs
}

func useCacheDir(dir string, who *account) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if barrier := who.barrier(filepath.Dir(dir)); barrier != "" {
		return "", fmt.Errorf("user %s may not enter %s", who.name, barrier)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		// Whatever our umask is, the last directory is open to the server's user.
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
			return "", err
		}
	}
	if barrier := who.barrier(dir); barrier != "" {
		return "", fmt.Errorf("user %s may not enter %s", who.name, barrier)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if int(ownerOf(info)) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("others can write to %s", dir)
	}
	return dir, nil
}
