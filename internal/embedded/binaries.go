//go:build unix

package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// oldestMajor is the oldest major version of PostgreSQL that will do.
const oldestMajor = 14

// howToInstall ends every message about missing binaries.
const howToInstall = "install PostgreSQL (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql), or use a server of your own with --database-url"

// binaries are one installation of PostgreSQL.
type binaries struct {
	dir          string // holds initdb and postgres
	version      string // such as 15.18
	major, minor int
}

// machineDirs lists the directories where PostgreSQL's programs may be.
func machineDirs() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// In PATH there are often links, but initdb looks beside itself.
		for _, name := range []string{"postgres", "initdb"} {
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // Red Hat
		"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew
		"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	return dirs
}

// findBinaries returns the newest binaries that who can run and that fit the
// data, fetched if there are none.
func findBinaries(ctx context.Context, cfg Config, from source, who *account, data *dataDir) (binaries, error) {
	dirs := from.dirs
	if cfg.BinDir != "" {
		dirs = []string{cfg.BinDir}
	}
	found, refusals := examine(ctx, dirs, who)
	if err := ctx.Err(); err != nil {
		return binaries{}, fmt.Errorf("embedded: %w", err)
	}
	for _, bin := range found {
		if data.major == 0 || data.major == bin.major {
			return bin, nil
		}
	}
	if cfg.BinDir != "" && len(found) == 0 {
		return binaries{}, fmt.Errorf("%w: %w: %s", ErrNoBinaries, listed(refusals), howToInstall)
	}
	if data.major != 0 && (cfg.BinDir != "" || data.major != from.release.major()) {
		return binaries{}, wrongVersion(data, found)
	}
	bin, err := fetch(ctx, cfg, from.release, who)
	if err != nil {
		return binaries{}, fmt.Errorf("%w: %w: %s", ErrNoBinaries, err, howToInstall)
	}
	return bin, nil
}

func wrongVersion(data *dataDir, found []binaries) error {
	versions := "none"
	if len(found) > 0 {
		versions = strings.Join(versionsOf(found), ", ")
	}
	return fmt.Errorf("%w: %s is of PostgreSQL %d, found on this machine: %s: install PostgreSQL %d or choose another data directory",
		ErrVersion, data.path, data.major, versions, data.major)
}

func versionsOf(found []binaries) []string {
	var versions []string
	for _, bin := range found {
		versions = append(versions, bin.version)
	}
	return versions
}

// examine returns the usable ones of dirs, newest first, and what is wrong
// with the others.
func examine(ctx context.Context, dirs []string, who *account) (found []binaries, refusals []error) {
	seen := make(map[string]bool)
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		if seen[real] {
			continue
		}
		seen[real] = true
		bin, err := examineDir(ctx, real, who)
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		found = append(found, bin)
	}
	slices.SortStableFunc(found, func(a, b binaries) int {
		return cmp.Or(cmp.Compare(b.major, a.major), cmp.Compare(b.minor, a.minor))
	})
	return found, refusals
}

// examineDir runs the programs in dir as who, which shows at once whether they
// are there, can be reached, and belong together.
func examineDir(ctx context.Context, dir string, who *account) (binaries, error) {
	bin := binaries{dir: dir}
	for _, name := range []string{"postgres", "initdb"} {
		version, err := askVersion(ctx, filepath.Join(dir, name), who)
		if err != nil {
			return binaries{}, err
		}
		if bin.version != "" && bin.version != version {
			return binaries{}, fmt.Errorf("%s: postgres is %s but initdb is %s", dir, bin.version, version)
		}
		bin.version = version
	}
	major, minor, _ := strings.Cut(bin.version, ".")
	bin.major, _ = strconv.Atoi(major) // digits, says versionPattern
	bin.minor, _ = strconv.Atoi(minor) // absent in a version that is not released
	if bin.major < oldestMajor {
		return binaries{}, fmt.Errorf("%s: PostgreSQL %s is older than %d", dir, bin.version, oldestMajor)
	}
	return bin, nil
}

// listed is errors.Join on one line.
func listed(errs []error) error {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}

func askVersion(ctx context.Context, program string, who *account) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Dir = "/"
	cmd.Env = serverEnv(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.credential}
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("user %s cannot run %s: %w", who.name, program, err)
	}
	match := regexp.MustCompile(`\(PostgreSQL\) (\d+(\.\d+)?)`).FindSubmatch(output)
	if match == nil {
		return "", fmt.Errorf("%s --version says %q", program, output)
	}
	return string(match[1]), nil
}
