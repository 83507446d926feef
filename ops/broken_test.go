package ops_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRules_aBrokenOneFailsItsTests breaks every rule at each of its places, one at a
// time, and wants promtool's tests of it to fail: what can be broken without being seen is
// not tested.
func TestRules_aBrokenOneFailsItsTests(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, r := range rules(t) {
		t.Run(r.Alert, func(t *testing.T) {
			t.Parallel()
			tests := strings.ReplaceAll(read(t, filepath.Join("tests", r.page()+".yaml")), "../alerts.yaml", "alerts.yaml")
			all := breaks(r)
			if len(all) < 3 {
				t.Errorf("only %d ways to break it", len(all))
			}
			dir := t.TempDir()
			write(t, filepath.Join(dir, "alerts.yaml"), file(t, all...))
			write(t, filepath.Join(dir, "test.yaml"), tests)
			if out, err := exec.Command(promtool, "check", "rules", "--lint=none", filepath.Join(dir, "alerts.yaml")).CombinedOutput(); err != nil {
				t.Fatalf("what is no rule any more proves nothing: %s", out)
			}
			for _, b := range all {
				write(t, filepath.Join(dir, "alerts.yaml"), file(t, b))
				if err := exec.Command(promtool, "test", "rules", filepath.Join(dir, "test.yaml")).Run(); err == nil {
					t.Errorf("with %s its tests still pass", b.how)
				}
			}
		})
	}
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

// A place is what can be broken in an expression, and what it is replaced by.
var places = []struct {
	find    *regexp.Regexp
	replace func(string) []string
}{
	// A metric of another name.
	{regexp.MustCompile(`\bidem_\w+`), func(s string) []string { return []string{s + "_of_others"} }},
	// A value that a label is compared with: it alone is missing.
	{regexp.MustCompile(`"[^"]+"`), without},
	// Another threshold, or a floor that is none.
	{regexp.MustCompile(`(?:(?:[<>]=?|==) |\n|^)\s*\d+(?:\.\d+)?\b`), otherNumber},
	// A comparison the other way round.
	{regexp.MustCompile(` (?:[<>]=?|==) `), func(s string) []string {
		return []string{strings.NewReplacer("<", ">", ">", "<", "==", "!=").Replace(s)}
	}},
	// A window of another length: hours instead of minutes, and the other way round.
	{regexp.MustCompile(`\[\d+[mh]\]`), func(s string) []string {
		return []string{strings.NewReplacer("m", "h", "h", "m").Replace(s)}
	}},
	// And, or, unless: one for another.
	{regexp.MustCompile(`\b(?:and|or|unless)\b`), func(s string) []string {
		return []string{map[string]string{"and": "or", "or": "and", "unless": "and"}[s]}
	}},
	// Another quantile.
	{regexp.MustCompile(`\bhistogram_quantile\(0\.9`), func(string) []string { return []string{"histogram_quantile(0.5", "histogram_quantile(0.999"} }},
}

// without takes each of the alternatives "a|b" away, one at a time.
func without(value string) (all []string) {
	words := strings.Split(strings.Trim(value, `"`), "|")
	if len(words) == 1 {
		return []string{`"of_others"`}
	}
	for i := range words {
		rest := append(append([]string{}, words[:i]...), words[i+1:]...)
		all = append(all, `"`+strings.Join(rest, "|")+`"`)
	}
	return all
}

func otherNumber(found string) (all []string) {
	number := regexp.MustCompile(`\d+(?:\.\d+)?$`)
	others := []string{"(${0} * 100)", "(${0} * 0.01)"}
	if number.FindString(found) == "0" {
		others = []string{"100", "-1"}
	}
	for _, other := range others {
		all = append(all, number.ReplaceAllString(found, other))
	}
	return all
}

// breaks lists the ways in which a rule is broken: each place by itself, and how long it
// has to be true.
func breaks(r rule) (all []broken) {
	for _, place := range places {
		for _, at := range place.find.FindAllStringIndex(r.Expr, -1) {
			was := r.Expr[at[0]:at[1]]
			for _, is := range place.replace(was) {
				b := broken{rule: r, how: fmt.Sprintf("%q instead of %q at %d", is, was, at[0])}
				b.Expr = r.Expr[:at[0]] + is + r.Expr[at[1]:]
				all = append(all, b)
			}
		}
	}
	if r.For != "" {
		for _, is := range []string{"0s", "6h"} {
			b := broken{rule: r, how: "for: " + is + " instead of " + r.For}
			b.For = is
			all = append(all, b)
		}
	}
	return all
}
