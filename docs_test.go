package idem_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/idem-go/idem"

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// wantSame compares two lists as sets without repetitions.
func wantSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	}
}

// arrowsOfFiles reads the headers of the statements on keys, effects and tasks, and of
// those that a person decides on: "absent -> answered" is an arrow. A file of a door
// without one is listed apart.
func arrowsOfFiles(t *testing.T) (arrows, others []string) {
	t.Helper()
	header := regexp.MustCompile(`^-- (\w+): (?:(\w+(?:, \w+)*) -> (\w+(?:, \w+)*)\n)?`)
	byHand := sqlFiles(t, "admin")
	for _, file := range slices.Concat(sqlFiles(t, "keys"), sqlFiles(t, "effects"), sqlFiles(t, "tasks"), byHand) {
		name := filepath.Base(file)
		found := header.FindStringSubmatch(readPage(t, file))
		switch {
		case found == nil || found[1]+".sql" != name:
			t.Errorf("%s: the header must begin with its name, as in -- key_answer: absent -> answered", file)
		case found[3] == "":
			if !slices.Contains(byHand, file) { // those only read
				others = append(others, name)
			}
		default:
			for from := range strings.SplitSeq(found[2], ", ") {
				for to := range strings.SplitSeq(found[3], ", ") {
					arrows = append(arrows, from+" -> "+to+" by "+name)
				}
			}
		}
	}
	return arrows, others
}

func sqlFiles(t *testing.T, door string) []string {
	t.Helper()
	files, err := filepath.Glob("internal/pgsql/" + door + "/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no statements in internal/pgsql/%s: %v", door, err)
	}
	return files
}

func TestStates_pageAndStatementsHaveTheSameArrows(t *testing.T) {
	page := readPage(t, "docs/states.md")
	arrows, others := arrowsOfFiles(t)
	var drawn, tabled, listed []string
	for _, m := range regexp.MustCompile(`(?m)^ +(\w+) --> (\w+): (\w+\.sql)$`).FindAllStringSubmatch(page, -1) {
		drawn = append(drawn, m[1]+" -> "+m[2]+" by "+m[3])
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+) \| (\w+) \| (\w+\.sql) \|`).FindAllStringSubmatch(page, -1) {
		tabled = append(tabled, m[1]+" -> "+m[2]+" by "+m[3])
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+\.sql) \|`).FindAllStringSubmatch(page, -1) {
		listed = append(listed, m[1])
	}
	wantSame(t, "the diagrams in docs/states.md against the headers", drawn, slices.Clone(arrows))
	wantSame(t, "the tables in docs/states.md against the headers", tabled, arrows)
	wantSame(t, "the statements without an arrow in docs/states.md against the files", listed, others)
}

// TestStates_eachPartDrawsItsOwn keeps the files of keys out of the diagram of effects,
// and so on: they have states of the same name.
func TestStates_eachPartDrawsItsOwn(t *testing.T) {
	for what, part := range map[string]string{"key": "Keys", "effect": "Effects", "task": "Tasks"} {
		_, page, found := strings.Cut(readPage(t, "docs/states.md"), "\n## "+part+"\n")
		if !found {
			t.Fatalf("docs/states.md has no part for %s", part)
		}
		page, _, _ = strings.Cut(page, "\n## ")
		drawn := regexp.MustCompile(`(?m)--> \w+: (\w+\.sql)$`).FindAllStringSubmatch(page, -1)
		if len(drawn) == 0 {
			t.Errorf("the part %s has no diagram", part)
		}
		for _, m := range drawn {
			if subject(m[1]) != what {
				t.Errorf("%s is drawn in the part %s", m[1], part)
			}
		}
	}
}

// subject is what a statement changes, by its name: key, effect, task. A take is one of
// tasks.
func subject(file string) string {
	what, _, _ := strings.Cut(file, "_")
	if what == "tasks" || what == "take" {
		return "task"
	}
	return what
}

// statesOfSchema are the states that the newest form of a table's constraint knows.
func statesOfSchema(t *testing.T, table, constraint string) map[string]bool {
	t.Helper()
	states := map[string]bool{}
	for _, file := range sqlFiles(t, "migrations") {
		_, body, _ := strings.Cut(readPage(t, file), " table idem."+table)
		_, body, found := strings.Cut(body, "constraint "+constraint+" check (")
		if !found {
			continue
		}
		body, _, _ = strings.Cut(body, "\n    )")
		body, _, _ = strings.Cut(body, "\n)")
		clear(states)
		for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(body, -1) {
			states[m[1]] = true
		}
	}
	return states
}

func TestStates_arrowsKnowTheStatesOfTheSchema(t *testing.T) {
	known := map[string]map[string]bool{
		"key":    statesOfSchema(t, "idempotency_keys", "state_columns"),
		"effect": statesOfSchema(t, "applied_effects", "status_columns"),
		"task":   statesOfSchema(t, "tasks", "status_columns"),
	}
	known["key"]["absent"], known["effect"]["none"], known["task"]["none"] = true, true, true // no row
	reached := map[string]map[string]bool{"key": {}, "effect": {}, "task": {}}
	arrows, _ := arrowsOfFiles(t)
	for _, arrow := range arrows {
		words := strings.Fields(arrow)
		what := subject(words[4])
		if reached[what] == nil {
			t.Errorf("%s: a statement with an arrow is named for the key, the effect or the task that it changes", words[4])
			continue
		}
		reached[what][words[0]], reached[what][words[2]] = true, true
	}
	for what, states := range known {
		wantSame(t, "the states of a "+what+" in the headers against the schema's constraint",
			slices.Collect(maps.Keys(reached[what])), slices.Collect(maps.Keys(states)))
	}
}

// TestStates_stepsAreNumberedAndNamed holds the form of the tables whose names the crash
// matrices read.
func TestStates_stepsAreNumberedAndNamed(t *testing.T) {
	const head = "| n | name | what has happened by then | what a crash here leaves |\n|---|---|---|---|\n"
	row := regexp.MustCompile(`^\| (\d+) \| ([a-z]+(?:-[a-z]+)*) \| [^|]+ \| [^|]+ \|$`)
	parts := strings.Split(readPage(t, "docs/states.md"), head)[1:]
	if len(parts) != 3 {
		t.Fatalf("%d tables of steps, want those of a request on a lease, of a task in the transaction and of one on a lease", len(parts))
	}
	for n, part := range parts {
		table, _, _ := strings.Cut(part, "\n\n")
		names := map[string]bool{}
		for i, line := range strings.Split(table, "\n") {
			m := row.FindStringSubmatch(line)
			switch {
			case m == nil:
				t.Errorf("not a step: %q", line)
			case m[1] != strconv.Itoa(i+1) || names[m[2]]:
				t.Errorf("step %s %s: want number %d and a name of its own", m[1], m[2], i+1)
			default:
				names[m[2]] = true
			}
		}
		if len(names) < 10 {
			t.Errorf("table %d has %d steps, want at least 10", n+1, len(names))
		}
	}
}

// TestGuarantees_everyCellIsShownByATest follows each cell of both tables to the test
// that shows it, or to the limit that it names.
func TestGuarantees_everyCellIsShownByATest(t *testing.T) {
	page := readPage(t, "docs/guarantees.md")
	tests := regexp.MustCompile(`\[(Test\w+)\]\(([^)\s]+)\)`)
	for _, m := range tests.FindAllStringSubmatch(page, -1) {
		file := filepath.Join("docs", filepath.FromSlash(m[2]))
		if !exists(file) || !strings.Contains(readPage(t, file), "\nfunc "+m[1]+"(t *testing.T) {") {
			t.Errorf("%s is not in %s", m[1], m[2])
		}
	}
	tables := strings.Split(page, "\n| fault |")[1:]
	if len(tables) != 2 {
		t.Fatalf("docs/guarantees.md has %d tables whose first column is the fault, want one of requests and one of tasks", len(tables))
	}
	for _, part := range tables {
		table, _, _ := strings.Cut(part, "\n\n")
		for _, line := range strings.Split(table, "\n")[2:] {
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			for i, cell := range cells[1:] {
				if cell != "there is no call" && !tests.MatchString(cell) && !strings.Contains(cell, "](#") {
					t.Errorf("%s, way %d: the cell leads to no test and to no limit: %s", cells[0], i+1, cell)
				}
			}
		}
	}
}

// packages are the directories of this module that hold Go files, with the
// packages of this module that each imports outside of its tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || exists(filepath.Join(file, "go.mod"))):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name := packageName(path.Join(module, filepath.ToSlash(filepath.Dir(file))))
		imports[name] = append(imports[name], name)
		for _, spec := range parsed.Imports {
			if to := strings.Trim(spec.Path.Value, `"`); to == module || strings.HasPrefix(to, module+"/") {
				imports[name] = append(imports[name], packageName(to))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// packageName is an import path as docs/architecture.md writes it.
func packageName(importPath string) string {
	if importPath == module {
		return "idem"
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func TestArchitecture_importsPointOneWay(t *testing.T) {
	page := readPage(t, "docs/architecture.md")
	_, block, _ := strings.Cut(page, "**Imports point one way**")
	_, block, _ = strings.Cut(block, "\n\n")
	block, _, _ = strings.Cut(block, "\n\n")
	layer := map[string]int{}
	for i, line := range strings.Split(block, "\n") {
		for name := range strings.SplitSeq(strings.TrimSpace(line), ", ") {
			layer[name] = i
		}
	}
	imports := packages(t)
	wantSame(t, "the packages in the order of imports in docs/architecture.md",
		slices.Collect(maps.Keys(layer)), slices.Collect(maps.Keys(imports)))
	for from, all := range imports {
		for _, to := range all {
			if to != from && layer[to] <= layer[from] {
				t.Errorf("%s imports %s, which docs/architecture.md does not have on a lower line", from, to)
			}
		}
	}
}

func TestArchitecture_treeNamesEveryPackage(t *testing.T) {
	page := readPage(t, "docs/architecture.md")
	_, tree, _ := strings.Cut(page, "## The tree\n\n")
	tree, _, _ = strings.Cut(tree, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile(`(?m)^ {4,6}([a-z/]+) `).FindAllStringSubmatch(tree, -1) {
		named = append(named, m[1])
	}
	wantSame(t, "the tree in docs/architecture.md", named, slices.Collect(maps.Keys(packages(t))))
}

func TestDecisions_haveALineForEveryDirectDependency(t *testing.T) {
	page := readPage(t, "docs/decisions.md")
	var wanted, named []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(readPage(t, "go.mod"), -1) {
		wanted = append(wanted, m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		named = append(named, m[1])
	}
	wantSame(t, "the dependencies in docs/decisions.md against go.mod", named, wanted)
}

// Those of the other modules are named in a sentence.
func TestDecisions_nameEveryDirectDependencyOfEveryModule(t *testing.T) {
	page := readPage(t, "docs/decisions.md")
	modules, dependencies := 0, 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "go.mod" {
			return err
		}
		modules++
		for _, m := range regexp.MustCompile(`(?m)^(?:\t|require )(\S+) v\S+$`).FindAllStringSubmatch(readPage(t, path), -1) {
			dependencies++
			if !strings.HasPrefix(m[1], "github.com/idem-go/idem") && !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("docs/decisions.md does not name %s, which %s requires", m[1], path)
			}
		}
		return nil
	})
	if err != nil || modules < 10 || dependencies < 30 {
		t.Errorf("%d modules with %d dependencies were read: %v", modules, dependencies, err)
	}
}

// TestDocs_linksLeadSomewhere follows the links between pages of this repository.
func TestDocs_linksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range append(pages, more...) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), filepath.FromSlash(target))
			}
			if !exists(file) {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if fragment != "" && !slices.Contains(headings(readPage(t, file)), fragment) {
				t.Errorf("%s links to %s, and %s has no such heading", page, m[1], file)
			}
		}
	}
}

// TestDocs_settlementsSayOfWhichCall keeps a command that somebody copies from believing
// evidence that is older than the last call.
func TestDocs_settlementsSayOfWhichCall(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/runbooks/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			for _, command := range regexp.MustCompile(`idem effects settle .* --yes`).FindAllString(readPage(t, page), -1) {
				found++
				if !regexp.MustCompile(` --calls \d`).MatchString(command) {
					t.Errorf("%s: add --calls to %s", page, command)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d settlements were found", found)
	}
}

// headings are the fragments under which a page's headings are reached.
func headings(page string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(text, " ", "-"))
	}
	return all
}
