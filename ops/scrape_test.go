package ops_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scrape is what /metrics of a program says: its text, and the values that each label of
// each metric has.
type scrape struct {
	text   string
	labels map[string]map[string]map[string]bool
}

func scrapeOf(t *testing.T, url string) scrape {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics: %s %v", res.Status, err)
	}
	s := scrape{string(text), map[string]map[string]map[string]bool{}}
	line := regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`)
	pair := regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	for _, m := range line.FindAllStringSubmatch(s.text, -1) {
		values := s.labels[m[1]]
		if values == nil {
			values = map[string]map[string]bool{}
			s.labels[m[1]] = values
		}
		for _, p := range pair.FindAllStringSubmatch(m[2], -1) {
			if values[p[1]] == nil {
				values[p[1]] = map[string]bool{}
			}
			values[p[1]][p[2]] = true
		}
	}
	return s
}

var (
	metricName = regexp.MustCompile(`\bidem_\w+`)
	selector   = regexp.MustCompile(`\b(idem_\w+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|ignoring|group_left|without) \(([^)]*)\)`)
)

// ofPrometheus are the labels that a program does not write.
var ofPrometheus = []string{"job", "instance"}

// lacks lists what an expression names and the scrape does not have: metrics, labels and
// values of labels.
func (s scrape) lacks(expr string) (lacking []string) {
	known := map[string]bool{}
	for _, name := range metricName.FindAllString(expr, -1) {
		if s.labels[name] == nil {
			lacking = append(lacking, "the metric "+name)
		}
		for label := range maps.Keys(s.labels[name]) {
			known[label] = true
		}
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			values := s.labels[m[1]][l[1]]
			if values == nil && !slices.Contains(ofPrometheus, l[1]) {
				lacking = append(lacking, fmt.Sprintf("the label %s of %s", l[1], m[1]))
			}
			for value := range strings.SplitSeq(l[3], "|") {
				if values != nil && !values[value] && !strings.HasPrefix(value, "$") {
					lacking = append(lacking, fmt.Sprintf("the %s %q of %s", l[1], value, m[1]))
				}
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !known[label] && !slices.Contains(ofPrometheus, label) {
				lacking = append(lacking, "the label "+label)
			}
		}
	}
	return lacking
}

func TestScrape_findsWhatIsLacking(t *testing.T) {
	s := scrape{"", map[string]map[string]map[string]bool{"idem_a_total": {"outcome": {"x": true}}}}
	for expr, want := range map[string]string{
		`sum by (outcome) (rate(idem_a_total{job=~"$job", outcome="x"}[5m]))`: "",
		`idem_b_total`:                      "the metric idem_b_total",
		`idem_a_total{outcome=~"x|y"}`:      `the outcome "y" of idem_a_total`,
		`idem_a_total{route=~"$route"}`:     "the label route of idem_a_total",
		`sum by (job, kind) (idem_a_total)`: "the label kind",
	} {
		if got := strings.Join(s.lacks(expr), ", "); got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

// wantBounds wants every bound of a histogram in tests/ to be one that the program has: with
// others promtool's tests prove nothing, since a quantile is made of the bounds around it.
func wantBounds(t *testing.T, s scrape) {
	t.Helper()
	found := 0
	for _, r := range rules(t) {
		for _, m := range selector.FindAllStringSubmatch(read(t, filepath.Join("tests", r.page()+".yaml")), -1) {
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if l[1] != "le" {
					continue
				}
				if found++; !s.labels[m[1]]["le"][l[3]] {
					t.Errorf("tests/%s.yaml: %s has no bound %s", r.page(), m[1], l[3])
				}
			}
		}
	}
	if found == 0 {
		t.Error("no bound was found")
	}
}
