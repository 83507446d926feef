package ops_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

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
	{regexp.MustCompile(`\[\d+[mhd]\]`), func(s string) []string {
		return []string{strings.NewReplacer("m", "h", "h", "m", "d", "m").Replace(s)}
	}},
	// A look back that is a sixth as long, and four times.
	{regexp.MustCompile(`\[\d+[mh]:`), func(s string) []string {
		long, err := time.ParseDuration(strings.Trim(s, "[:"))
		if err != nil {
			panic(err)
		}
		return []string{fmt.Sprintf("[%ds:", int(long.Seconds())/6), fmt.Sprintf("[%ds:", int(long.Seconds())*4)}
	}},
	// Not of an hour ago, but of now, or of longer ago.
	{regexp.MustCompile(` offset \d+[mhd]`), func(s string) []string { return []string{"", " offset 3h"} }},
	// Another aggregation. The value of a group is nobody's.
	{regexp.MustCompile(`\b(?:sum|max|min) by`), func(s string) []string {
		return map[string][]string{"sum by": {"max by"}, "max by": {"min by", "sum by"}, "min by": {"max by", "sum by"}}[s]
	}},
	// A label less to tell things apart by.
	{regexp.MustCompile(`\b(?:by|on) \([\w, ]+\)`), labelLess},
	// Another number of those in a window, and only the one of now.
	{regexp.MustCompile(`\b(?:last|max|min)_over_time\b`), func(s string) []string {
		return map[string][]string{
			"last_over_time": {"max_over_time", "min_over_time"}, "max_over_time": {"min_over_time"}, "min_over_time": {"max_over_time"}}[s]
	}},
	{regexp.MustCompile(`\b(?:last|max)_over_time\([\w{}="]+\[\w+\]`), func(s string) []string {
		of, _, _ := strings.Cut(s[strings.Index(s, "(")+1:], "[")
		return []string{"(" + of}
	}},
	// And, or, unless: one for another.
	{regexp.MustCompile(`\b(?:and|or|unless)\b`), func(s string) []string {
		return []string{map[string]string{"and": "or", "or": "and", "unless": "and"}[s]}
	}},
	// Another quantile.
	{regexp.MustCompile(`\bhistogram_quantile\(0\.9`), func(string) []string { return []string{"histogram_quantile(0.5", "histogram_quantile(0.999"} }},
	{regexp.MustCompile(`\bquantile_over_time\(0\.5`), func(string) []string { return []string{"quantile_over_time(0.1", "quantile_over_time(0.9"} }},
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

// labelLess takes each of the labels away, one at a time.
func labelLess(grouping string) (all []string) {
	head, labels, _ := strings.Cut(strings.TrimSuffix(grouping, ")"), "(")
	names := strings.Split(labels, ", ")
	for i := range names {
		all = append(all, head+"("+strings.Join(slices.Delete(slices.Clone(names), i, i+1), ", ")+")")
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
