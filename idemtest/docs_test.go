package idemtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDocs_thePageIsTheExample compares the Go code on the page with the files
// that are compiled and run: all of them after the imports.
func TestDocs_thePageIsTheExample(t *testing.T) {
	var files []string
	for _, name := range []string{"example_test.go", "example_task_test.go"} {
		_, code, found := strings.Cut(read(t, name), "\n)\n\n")
		if !found {
			t.Fatalf("%s has no imports", name)
		}
		files = append(files, code)
	}
	want := strings.Join(files, "\n")
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(read(t, "../docs/testing.md"), -1) {
		blocks = append(blocks, m[1])
	}
	if got := strings.Join(blocks, "\n"); got != want {
		t.Errorf("the code on docs/testing.md is not that of idemtest/example_test.go and example_task_test.go:\n got  %q\n want %q", got, want)
	}
}

// TestDocs_replayedHeadersAreThoseOfTheGuard compares the headers that Repeat
// compares with those that the guard says it replays.
func TestDocs_replayedHeadersAreThoseOfTheGuard(t *testing.T) {
	_, part, _ := strings.Cut(read(t, "../docs/http.md"), "<!-- made from the code: headers -->")
	part, _, _ = strings.Cut(part, "<!-- end of headers -->")
	var want []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1) {
		want = append(want, m[1])
	}
	if !slices.Equal(replayedHeaders[:], want) {
		t.Errorf("idemtest compares %q, docs/http.md says that %q are replayed", replayedHeaders, want)
	}
}
