//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeInstallation makes programs that only know their version.
func fakeInstallation(t *testing.T, postgres, initdb string) string {
	t.Helper()
	dir := openDir(t)
	for name, version := range map[string]string{"postgres": postgres, "initdb": initdb} {
		if version == "" {
			continue
		}
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		path := filepath.Join(dir, name)
		writeProgram(t, path, []byte(script))
	}
	return dir
}

func TestExamine_newestFirst(t *testing.T) {
	dirs := []string{
		fakeInstallation(t, "9.6.24", "9.6.24"),
		fakeInstallation(t, "14.9", "14.9"),
		fakeInstallation(t, "17.5 (Debian 17.5-1)", "17.5 (Debian 17.5-1)"),
		fakeInstallation(t, "13.22", "13.22"),
		fakeInstallation(t, "14.10", "14.10"),
		fakeInstallation(t, "18beta1", "18beta1"),
		fakeInstallation(t, "16.1", ""),
		fakeInstallation(t, "16.1", "16.2"),
		"/no/such/directory",
	}
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	found, refusals := examine(t.Context(), append(dirs, dirs[1]), who)
	if got, want := versionsOf(found), []string{"18", "17.5", "14.10", "14.9"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if len(refusals) != 5 {
		t.Errorf("refused %v, want five", refusals)
	}
}

// A link in PATH leads to a directory with everything beside it.
func TestMachineDirs_followsLinksInPath(t *testing.T) {
	real := fakeInstallation(t, "17.5", "17.5")
	links := openDir(t)
	if err := os.Symlink(filepath.Join(real, "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	resolved, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	if dirs := machineDirs(); !slices.Contains(dirs, resolved) {
		t.Errorf("%q does not contain %s", dirs, resolved)
	}
}

func TestFindBinaries_takesThoseThatFitTheData(t *testing.T) {
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	from := source{dirs: []string{fakeInstallation(t, "17.5", "17.5"), fakeInstallation(t, "16.4", "16.4")}, release: pinnedRelease()}
	for major, want := range map[int]string{0: "17.5", 16: "16.4", 17: "17.5"} {
		bin, err := findBinaries(t.Context(), Config{}, from, who, &dataDir{path: "/data", major: major})
		if err != nil || bin.version != want {
			t.Errorf("for data of %d: %q, %v, want %s", major, bin.version, err, want)
		}
	}
	_, err = findBinaries(t.Context(), Config{}, from, who, &dataDir{path: "/data", major: 15})
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "17.5, 16.4") {
		t.Errorf("for data of 15: %v, want %v that names 17.5, 16.4", err, ErrVersion)
	}
}

func TestStart_refusesABinDirWithoutPrograms(t *testing.T) {
	_, err := Start(t.Context(), Config{BinDir: openDir(t)})
	if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("%v, want %v that says what to install", err, ErrNoBinaries)
	}
}
