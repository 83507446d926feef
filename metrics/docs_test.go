package metrics_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
)

// The table in docs/watching.md has the metrics of a scrape, with their types and labels.
func TestDocs_theTableHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	onPage := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(idem_[a-z_]+)` \\| (counter|gauge|histogram)[^|]*\\|([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		labels := strings.Fields(strings.ReplaceAll(m[3], "`", ""))
		slices.Sort(labels)
		onPage[m[1]] = m[2] + " " + strings.Join(labels, " ")
	}
	m := measure(t, metrics.Config{Pool: pgtest.New(t)})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventRoute, Route: "r"})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventHandler, Queue: "q", TaskKind: "k"})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		have := strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, " ")
		if onPage[f.GetName()] != have {
			t.Errorf("%s is %q, and %q on the page", f.GetName(), have, onPage[f.GetName()])
		}
		delete(onPage, f.GetName())
	}
	for name := range onPage {
		t.Errorf("%s is on the page and in no scrape", name)
	}
}

// How many lines a route and a kind have in a scrape is said where they are bounded.
func TestDocs_sayHowManyLinesThereAre(t *testing.T) {
	m := measure(t, metrics.Config{})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventRoute, Route: "r"})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventHandler, Queue: "q", TaskKind: "k"})
	lines := map[string]int{}
	for name := range m.scrape(t) {
		for _, of := range []string{"route", "kind"} {
			if regexp.MustCompile(`[{,]` + of + `="`).MatchString(name) {
				lines[of]++
			}
		}
	}
	for file, of := range map[string]string{"../docs/watching.md": "route", "metrics.go": "kind"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprintf("about %d lines", (lines[of]+5)/10*10)
		if !strings.Contains(string(text), said) {
			t.Errorf("%s does not say that a %s has %s: it has %d", file, of, said, lines[of])
		}
	}
}
