package ops_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

const runbooks = "../docs/runbooks"

// pages are the pages of docs/runbooks but its index, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			all[name] = read(t, file)
		}
	}
	return all
}

func TestRunbooks_eachAlertHasItsPageAndEachPageItsAlert(t *testing.T) {
	all := pages(t)
	index := read(t, filepath.Join(runbooks, "README.md"))
	for _, r := range rules(t) {
		page, found := all[r.page()]
		if !found {
			t.Errorf("%s has no page", r.Alert)
			continue
		}
		delete(all, r.page())
		if !strings.HasPrefix(page, "# "+r.Alert+"\n") {
			t.Errorf("%s: its page has another title", r.Alert)
		}
		var parts []string
		for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(page, -1) {
			parts = append(parts, m[1])
		}
		if want := []string{"What it means", "How to look", "What to do", "How to know that it is over"}; !slices.Equal(parts, want) {
			t.Errorf("%s: its page has the parts %q, want %q", r.Alert, parts, want)
		}
		if row := "| [" + r.Alert + "](" + r.page() + ".md) | " + r.Labels["severity"] + " |"; !strings.Contains(index, row) {
			t.Errorf("docs/runbooks/README.md lacks the row %s", row)
		}
	}
	for name := range all {
		t.Errorf("docs/runbooks/%s.md is of no alert", name)
	}
}

// TestRunbooks_theConfigurationIsOne has promtool read what the index shows.
func TestRunbooks_theConfigurationIsOne(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "alerts.yaml"), read(t, "alerts.yaml"))
	shown := blocks(read(t, filepath.Join(runbooks, "README.md")), "yaml")
	if len(shown) != 1 {
		t.Fatalf("docs/runbooks/README.md shows %d configurations, want one", len(shown))
	}
	write(t, filepath.Join(dir, "prometheus.yml"), shown[0])
	out, err := exec.Command(tool(t, "promtool"), "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRunbooks_linksLeadSomewhere(t *testing.T) {
	all := pages(t)
	all["README"] = read(t, filepath.Join(runbooks, "README.md"))
	for name, page := range all {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]+)?\)`).FindAllStringSubmatch(page, -1) {
			text, err := os.ReadFile(filepath.Join(runbooks, m[1]))
			if err != nil {
				if info, err := os.Stat(filepath.Join(runbooks, m[1])); err != nil || !info.IsDir() {
					t.Errorf("%s.md links to %s, which is not there", name, m[1])
				}
				continue
			}
			heading := strings.ReplaceAll(strings.TrimPrefix(m[2], "#"), "-", " ")
			if heading != "" && !strings.Contains(strings.ToLower(string(text)), "# "+heading+"\n") {
				t.Errorf("%s.md links to %s%s, which has no such heading", name, m[1], m[2])
			}
		}
	}
}

// blocks are the fenced parts of a page in a language.
func blocks(page, language string) (all []string) {
	for _, m := range regexp.MustCompile("(?ms)^( *)```"+language+"\n(.+?)^ *```$").FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n")[1:])
	}
	return all
}

// inTrouble returns a database in the state of which the pages speak, as an operator with
// the grants of docs/operations.md sees it.
func inTrouble(t *testing.T, role string) string {
	t.Helper()
	at := pgtest.NewURL(t)
	owner := pgtest.Pool(t, at)
	_, grants, _ := strings.Cut(read(t, "../docs/operations.md"), "-- operator\n")
	grants, _, _ = strings.Cut(grants, "\n\n")
	role = "ops_" + strings.ReplaceAll(role, "-", "_")
	for _, sql := range []string{read(t, "testdata/trouble.sql"), "create role " + role + " login password 'operator'",
		strings.ReplaceAll(grants, "idem_operator", role)} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_, err := pgtest.Pool(t, at).Exec(context.Background(), "drop owned by "+role+"; drop role "+role)
		if err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal("the URL is none of pgtest")
	}
	u.User = url.UserPassword(role, "operator")
	return u.String()
}

// TestRunbooks_sqlRuns runs every query of the pages as an operator, on a connection that
// can only read.
func TestRunbooks_sqlRuns(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), inTrouble(t, "sql"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "set default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, page := range pages(t) {
		for _, sql := range blocks(page, "sql") {
			found++
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Errorf("%s.md: %v\n%s", name, err, sql)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d queries were found", found)
	}
}

// TestRunbooks_commandsWork runs the commands of each page, in their order, as an operator
// on a database in trouble. Those that decide the same thing in two ways have each their
// own database.
func TestRunbooks_commandsWork(t *testing.T) {
	t.Parallel()
	idem := build(t)
	for name, page := range pages(t) {
		for i, block := range blocks(page, "sh") {
			t.Run(name, func(t *testing.T) {
				at := inTrouble(t, name+string(rune('a'+i)))
				for command := range strings.Lines(block) {
					cmd := exec.Command("bash", "-c", command)
					cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(idem)+":"+os.Getenv("PATH"), "DATABASE_URL="+at)
					out, err := cmd.CombinedOutput()
					if !strings.HasPrefix(command, "idem ") || err != nil {
						t.Errorf("%s%v\n%s", command, err, out)
					}
				}
			})
		}
	}
}

// build makes the command idem.
func build(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "idem")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/idem")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
