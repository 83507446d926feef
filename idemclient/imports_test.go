package idemclient_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A client must not link a database because it retries: nothing but the standard
// library, without its database/sql, and the maker of UUIDs. (That one's types can
// be columns: it imports database/sql/driver, which is interfaces only.)
func TestImports_holdNoDatabase(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.Standard}} {{.ImportPath}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"github.com/google/uuid": true, "github.com/idem-go/idem/idemclient": true,
		"github.com/idem-go/idem/internal/downstream": true}
	seen := 0
	for line := range strings.Lines(string(out)) {
		standard, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if standard == "true" && path != "database/sql" {
			continue
		}
		if !allowed[path] {
			t.Errorf("idemclient imports %s", path)
		}
		seen++
	}
	if seen != len(allowed) {
		t.Errorf("go list named %d packages besides the standard library's, want %d", seen, len(allowed))
	}
}
