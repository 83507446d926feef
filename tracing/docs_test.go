package tracing_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// firsts are the words that a pattern finds first, each once, in order.
func firsts(text, pattern string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// part is what stands below a heading of docs/tracing.md.
func part(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, "../docs/tracing.md"), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/tracing.md has no %s", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func wantSame(t *testing.T, what string, page, code []string) {
	t.Helper()
	if !slices.Equal(page, code) || len(code) == 0 {
		t.Errorf("%s: docs/tracing.md has\n %q, the code\n %q", what, page, code)
	}
}

// Every attribute, step and kind of error is in the tables, and nothing else is.
func TestDocs_tablesAreTheCodes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(read(t, file))
		}
	}
	wantSame(t, "attributes", firsts(part(t, "Attributes"), "(?m)^\\| `([a-z_.]+)` \\|"),
		firsts(code.String(), `"((?:idem|messaging|http|error)\.[a-z_.]+)"`))
	wantSame(t, "steps", firsts(part(t, "Spans"), "(?m)^\\| `([a-z]+)` \\|"), firsts(read(t, "../tracer.go"), `Step = "([a-z]+)"`))
	_, kinds, _ := strings.Cut(part(t, "Attributes"), "| `error.type` |")
	kinds, _, _ = strings.Cut(kinds, "\n")
	wantSame(t, "kinds of errors", firsts(kinds, "`([a-z_]+)`"),
		firsts(read(t, "errors.go"), `(?:, |return )"([a-z_]+)"`))
}
