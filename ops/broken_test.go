package ops_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRules_aBrokenOneFailsItsTests breaks every rule at each of its places, one at a
// time, and wants promtool's tests of it to fail: what can be broken without being seen is
// not tested.
func TestRules_aBrokenOneFailsItsTests(t *testing.T) {
	t.Parallel()
	for _, r := range rules(t) {
		t.Run(r.Alert, func(t *testing.T) {
			t.Parallel()
			all := breaks(r)
			if len(all) < 3 {
				t.Errorf("only %d ways to break it", len(all))
			}
			seen := seenBroken(t, r, all)
			for i, b := range all {
				if !seen[i] {
					t.Errorf("with %s its tests still pass:\n%s", b.how, b.Expr)
				}
			}
		})
	}
}

// seenBroken returns those whose tests fail. Promtool runs one test after the other, of all
// that no test has failed for yet, each under a name of its own, beside the rule as it is.
func seenBroken(t *testing.T, r rule, all []broken) map[int]bool {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "alerts.yaml"), file(t, all...))
	if out, err := exec.Command(tool(t, "promtool"), "check", "rules", "--lint=none", filepath.Join(dir, "alerts.yaml")).CombinedOutput(); err != nil {
		t.Fatalf("what is no rule any more proves nothing: %s", out)
	}
	seen := map[int]bool{}
	for test := range readTests(t, r).Tests {
		// One that can not be evaluated ends the test, for the others too.
		for seeBroken(t, dir, test, r, all, seen) {
		}
	}
	return seen
}

// seeBroken has promtool run a test, and adds what it fails for to seen. It is to be run
// again if it ended before its end.
func seeBroken(t *testing.T, dir string, test int, r rule, all []broken, seen map[int]bool) (again bool) {
	t.Helper()
	asItIs := broken{rule: r}
	asItIs.Alert += "_" + strconv.Itoa(len(all))
	tested, names := []broken{asItIs}, []string{asItIs.Alert}
	for i, b := range all {
		if !seen[i] {
			b.Alert += "_" + strconv.Itoa(i)
			tested, names = append(tested, b), append(names, b.Alert)
		}
	}
	write(t, filepath.Join(dir, "alerts.yaml"), file(t, tested...))
	write(t, filepath.Join(dir, "tests.yaml"), testOf(t, r, test, names))
	out, err := exec.Command(tool(t, "promtool"), "test", "rules", filepath.Join(dir, "tests.yaml")).CombinedOutput()
	found := regexp.MustCompile(r.Alert+`_(\d+)\b`).FindAllSubmatch(out, -1)
	if err != nil && len(found) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range found {
		i, _ := strconv.Atoi(string(m[1]))
		if i == len(all) {
			t.Fatalf("the rule as it is fails, too:\n%s", out)
		}
		seen[i] = true
	}
	return strings.Contains(string(out), ", err: ")
}

// testFile is a file of promtool's tests.
type testFile struct {
	Interval string           `yaml:"evaluation_interval"`
	Rules    []string         `yaml:"rule_files"`
	Tests    []map[string]any `yaml:"tests"`
}

func readTests(t *testing.T, r rule) (f testFile) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join("tests", r.page()+".yaml"))), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// testOf is a file with one of a rule's tests, which asks for each of the names instead of
// the rule's own.
func testOf(t *testing.T, r rule, number int, names []string) string {
	t.Helper()
	f := readTests(t, r)
	test := f.Tests[number]
	for _, kind := range []string{"alert_rule_test", "promql_expr_test"} {
		var cases []any
		for _, name := range names {
			cases = append(cases, renamed(t, test[kind], r.Alert, name)...)
		}
		test[kind] = cases
	}
	f.Rules, f.Tests = []string{"alerts.yaml"}, []map[string]any{test}
	text, err := yaml.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// renamed are the cases of a test that ask for an alert of another name, and only for that.
func renamed(t *testing.T, cases any, was, is string) (all []any) {
	t.Helper()
	text, err := yaml.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer(was, is, "ALERTS{", `ALERTS{alertname="`+is+`", `)
	if err := yaml.Unmarshal([]byte(replace.Replace(string(text))), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// broken is a rule with one thing changed.
type broken struct {
	rule
	how string
}

// file is a file of rules with these only.
func file(t *testing.T, all ...broken) string {
	t.Helper()
	var rules []map[string]any
	for _, b := range all {
		one := map[string]any{"alert": b.Alert, "expr": b.Expr, "labels": b.Labels, "annotations": b.Annotations}
		if b.For != "" {
			one["for"] = b.For
		}
		rules = append(rules, one)
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "idem", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
