package idem_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem"
)

var backticked = regexp.MustCompile("`([^`]+)`")

// tableOf are the rows of the first table below a heading of docs/watching.md, as cells.
func tableOf(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	_, section, found := strings.Cut(readPage(t, "docs/watching.md"), heading+"\n\n")
	if !found {
		t.Fatalf("docs/watching.md has no heading %q", heading)
	}
	_, table, _ := strings.Cut("\n"+section, "\n|---")
	_, table, _ = strings.Cut(table, "\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
	}
	return rows
}

// firsts are the words in the first column of a table.
func firsts(t *testing.T, heading string) (words []string) {
	t.Helper()
	for _, row := range tableOf(t, heading) {
		words = append(words, strings.Trim(strings.TrimSpace(row[0]), "`"))
	}
	return words
}

func texts[W ~string](words []W) (all []string) {
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

func TestWatching_tablesHaveEveryWordOfTheCode(t *testing.T) {
	wantSame(t, "the events", firsts(t, "## Events"), texts(idem.EventKinds()))
	wantSame(t, "the outcomes", firsts(t, "### Outcomes of a request"), texts(idem.Outcomes()))
	wantSame(t, "the results of an attempt", firsts(t, "### Results of an attempt at a task"), texts(idem.TaskResults()))
	wantSame(t, "the results of an effect", firsts(t, "### Results of an effect"), texts(idem.EffectResults()))
}

func TestWatching_eventsHaveEveryFieldOfTheCode(t *testing.T) {
	var inCode, onPage []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[idem.Event]()) {
		if f.Name != "Kind" {
			inCode = append(inCode, f.Name)
		}
	}
	for _, row := range tableOf(t, "## Events") {
		for _, m := range backticked.FindAllStringSubmatch(row[1], -1) {
			if !slices.Contains(onPage, m[1]) {
				onPage = append(onPage, m[1])
			}
		}
	}
	wantSame(t, "the fields of events", onPage, inCode)
}

// declared are the constants of a type in a file, by their values.
func declared(t *testing.T, file, typed string) (words []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`\b`+typed+`\s+= "(\w+)"`).FindAllStringSubmatch(readPage(t, file), -1) {
		words = append(words, m[1])
	}
	return words
}

// The lists have what is declared: one that is added has to be added there, too.
func TestWatching_listsHaveEveryConstant(t *testing.T) {
	for name, c := range map[string]struct{ declared, listed []string }{
		"EventKind": {declared(t, "event.go", "EventKind"), texts(idem.EventKinds())},
	} {
		wantSame(t, name, c.listed, c.declared)
	}
	source := readPage(t, "event.go")
	for prefix, listed := range map[string][]string{"Outcome": texts(idem.Outcomes()), "Task": texts(idem.TaskResults()), "Effect": texts(idem.EffectResults())} {
		var found []string
		for _, m := range regexp.MustCompile(`(?m)^\t`+prefix+`[A-Z]\w*\s+(?:Outcome|TaskResult|EffectResult)\s+= "(\w+)"`).FindAllStringSubmatch(source, -1) {
			found = append(found, m[1])
		}
		wantSame(t, prefix, listed, found)
	}
}
