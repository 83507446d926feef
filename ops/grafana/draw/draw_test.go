package main

import (
	"strings"
	"testing"
	"time"
)

func TestReadRows_readsTheDashboard(t *testing.T) {
	rows, err := readRows("../idem.json")
	if err != nil {
		t.Fatal(err)
	}
	stacked := 0
	for _, r := range rows {
		for _, p := range r.panels {
			if len(p.Targets) == 0 || p.GridPos.W == 0 || p.FieldConfig.Defaults.Unit == "" {
				t.Errorf("%s: got %+v", r.title, p)
			}
			if p.stacked() {
				stacked++
			}
			for _, target := range p.Targets {
				if expr := fill(target.Expr, 4*time.Second); strings.Contains(expr, "$") || strings.Contains(target.Expr, "$__rate") && !strings.Contains(expr, "[4s]") {
					t.Errorf("%s: %s has a variable that is not known", p.Title, expr)
				}
			}
		}
	}
	if len(rows) != 6 || stacked == 0 {
		t.Errorf("got %d rows, %d panels that stack", len(rows), stacked)
	}
}

func TestWrite_inUnits(t *testing.T) {
	for _, test := range []struct {
		value      float64
		unit, want string
	}{
		{0.25, "percentunit", "25 %"}, {0, "s", "0 s"}, {0.0125, "s", "12.5 ms"}, {3, "s", "3 s"},
		{20, "reqps", "20/s"}, {7, "short", "7"},
	} {
		if got := write(test.value, test.unit); got != test.want {
			t.Errorf("%v in %s: got %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}

func TestLegend_namesLines(t *testing.T) {
	if got := legend("{{queue}} {{ status }}", map[string]string{"queue": "money", "status": "failed"}); got != "money failed" {
		t.Errorf("got %q", got)
	}
}
