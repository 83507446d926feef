//go:build unix

package embedded

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// emptyMachine has no PostgreSQL, and a release whose archive has the sum.
func emptyMachine(sum string) source {
	return source{release: release{version: "17.5.0", sums: map[string]string{"17.5.0 " + thisPlatform(): sum}}}
}

// serveArchive is a repository with one archive for this platform.
func serveArchive(t *testing.T, archive []byte) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repo/"+emptyMachine("").release.archivePath(thisPlatform()), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(archive) // a client that left is its own affair
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/repo/"
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// archiveOf is a jar with one entry.
func archiveOf(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var jar bytes.Buffer
	w := zip.NewWriter(&jar)
	entry, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

func TestFetch_refusesWhatItCannotTrust(t *testing.T) {
	genuine := archiveOf(t, "postgres.txz", []byte("not really"))
	none := archiveOf(t, "readme.txt", []byte("nothing here"))
	for name, test := range map[string]struct {
		from source
		url  string
		want string
	}{
		"another archive":   {emptyMachine(sumOf(genuine)), serveArchive(t, none), "its checksum is " + sumOf(none)},
		"no checksum":       {source{release: release{version: "17.5.0"}}, serveArchive(t, genuine), "no checksum is known"},
		"not found":         {emptyMachine(sumOf(genuine)), serveArchive(t, genuine) + "elsewhere", "404"},
		"nobody there":      {emptyMachine(sumOf(genuine)), "http://127.0.0.1:1", "refused"},
		"not an xz":         {emptyMachine(sumOf(genuine)), serveArchive(t, genuine), "xz"},
		"nothing to unpack": {emptyMachine(sumOf(none)), serveArchive(t, none), "holds no .txz"},
	} {
		t.Run(name, func(t *testing.T) {
			cache, temp := openDir(t), openDir(t)
			t.Setenv("TMPDIR", temp)
			_, err := start(t.Context(), Config{RepositoryURL: test.url, CacheDir: cache}, test.from)
			if !errors.Is(err, ErrNoBinaries) {
				t.Fatalf("%v, want %v", err, ErrNoBinaries)
			}
			for _, want := range []string{test.want, "apt-get install postgresql", "brew install postgresql", "--database-url"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a line", err)
			}
			assertEmpty(t, cache)
			assertEmpty(t, temp)
		})
	}
}

func TestPinnedRelease_hasASumForEachPlatform(t *testing.T) {
	r := pinnedRelease()
	for _, platform := range []string{"linux-amd64", "linux-arm64v8", "darwin-amd64", "darwin-arm64v8"} {
		sum, err := r.sum(platform)
		if raw, decodeErr := hex.DecodeString(sum); err != nil || decodeErr != nil || len(raw) != sha256.Size {
			t.Errorf("%s: %q, %v, want a SHA-256", platform, sum, errors.Join(err, decodeErr))
		}
	}
	if _, err := r.sum("plan9-mips"); err == nil {
		t.Error("a sum for a platform that has none")
	}
}

func TestDefaultRepository_isTheLibrarys(t *testing.T) {
	if got := repository(""); !strings.HasPrefix(got, "https://") || strings.HasSuffix(got, "/") {
		t.Errorf("default repository %q, want an https URL without a slash at its end", got)
	}
}

func TestCacheDir_isWhereTheServersUserCanEnter(t *testing.T) {
	closed := filepath.Join(openDir(t), "home")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := cacheDir(filepath.Join(closed, "cache"), who)
	if os.Geteuid() != 0 {
		if err != nil {
			t.Errorf("our own directory is refused: %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), closed) {
		t.Errorf("%q, %v, want an error that names %s", dir, err, closed)
	}
	t.Setenv("HOME", closed)
	t.Setenv("XDG_CACHE_HOME", "")
	if dirs := usualCacheDirs(); len(dirs) != 2 || who.barrier(filepath.Dir(dirs[0])) == "" || who.barrier(dirs[1]) != "" {
		t.Errorf("the directories are %q, want a closed one and an open one", dirs)
	}
}

func TestCacheDir_refusesOneThatOthersCanWrite(t *testing.T) {
	dir := openDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cacheDir(dir, who); err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Errorf("%v, want a refusal", err)
	}
}

func TestSave_refusesWhatIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive")
	_, err := save(io.LimitReader(zeros{}, archiveLimit+1), path)
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v, want a refusal", err)
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
