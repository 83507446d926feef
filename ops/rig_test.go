package ops_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// tool finds a program of Prometheus's.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not there; scripts/test-ops gets it, and runs these tests: %v", name, err)
	}
	return path
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
