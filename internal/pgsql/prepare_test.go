package pgsql_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgsql"
	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// files are the SQL files that hold one statement each, by path.
func files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".sql" || strings.HasPrefix(d.Name(), "0") {
			return err // numbered files are migrations of many statements
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil || len(found) < 90 {
		t.Fatalf("found %d SQL files (%v)", len(found), err)
	}
	return found
}

func TestFiles_prepareOnTheMigratedSchema(t *testing.T) {
	pool := pgtest.New(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for path, text := range files(t) {
		if _, err := conn.Conn().Prepare(t.Context(), path, pgsql.Statement(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFiles_beginWithTheirContract(t *testing.T) {
	for path, text := range files(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		if !strings.HasPrefix(text, "-- "+name+": ") {
			t.Errorf("%s does not begin with %q", path, "-- "+name+": ")
		}
		if !strings.Contains(text, "-- Rows: ") && !strings.Contains(path, "lock") {
			t.Errorf("%s does not say what its rows mean", path)
		}
		if pgsql.Statement(text) == "" || strings.Contains(pgsql.Statement(text), ";") {
			t.Errorf("%s is not one statement", path)
		}
	}
}
