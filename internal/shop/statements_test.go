package shop

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

func TestStatements_allArePreparedOnTheMigratedSchema(t *testing.T) {
	pool := pgtest.New(t)
	if err := Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d files, %v; want some", len(names), err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, name := range names {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "sql/"), ".sql")
		if _, err := conn.Conn().Prepare(t.Context(), "", statement(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := files.ReadFile("sql/" + name + ".sql")
		if err != nil || !strings.HasPrefix(string(text), "-- "+name+": ") {
			t.Errorf("%s: its header must begin with its name", name)
		}
	}
}

func TestWriteTimeout_outlastsEveryAnswer(t *testing.T) {
	for _, wait := range []time.Duration{0, idemhttp.DefaultWait, 5 * time.Minute} {
		longest := readTimeout + wait + idemhttp.DefaultLimit + commitLimit
		if got := writeTimeout(wait); got <= longest {
			t.Errorf("with a wait of %s: got %s, want more than %s", wait, got, longest)
		}
	}
}
