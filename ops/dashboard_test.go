package ops_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what is looked at of grafana/idem.json.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []graph
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any // a text or an object
		}
	}
}

// graph is a panel, or a row.
type graph struct {
	ID                       int
	Title, Type, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []struct {
		Expr, LegendFormat string
		Datasource         struct{ Type, UID string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/idem.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDashboard_hasItsRowsAndAVariableForTheDataSource(t *testing.T) {
	d := readDashboard(t)
	var rows []string
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if len(rows) == 0 || p.Description == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("the panel %q must be in a row and in the grid, say what it shows, and ask for something", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" {
				t.Errorf("the panel %q has a data source of its own", p.Title)
			}
		}
	}
	if want := []string{"Requests", "Waiting", "Tasks", "Effects", "Storage", "Database"}; !slices.Equal(rows, want) {
		t.Errorf("got the rows %q, want %q", rows, want)
	}
	if v := d.Templating.List; len(v) == 0 || v[0].Name != "datasource" || v[0].Type != "datasource" || v[0].Query != "prometheus" {
		t.Errorf("the first variable must be the data source: %+v", v)
	}
	if d.UID == "" || d.SchemaVersion < 36 || strings.Contains(read(t, "grafana/idem.json"), "__inputs") {
		t.Error("Grafana must be able to import it without a question")
	}
}

// TestDashboard_namesRunbooks keeps the pages that panels name.
func TestDashboard_namesRunbooks(t *testing.T) {
	all, named := pages(t), map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		for _, m := range regexp.MustCompile(`Runbook: ([\w-]+)\.`).FindAllStringSubmatch(p.Description, -1) {
			named[m[1]] = true
			if all[m[1]] == "" {
				t.Errorf("the panel %q names the page %s, which is not there", p.Title, m[1])
			}
		}
	}
	for page := range all {
		if !named[page] {
			t.Errorf("no panel shows what docs/runbooks/%s.md is about", page)
		}
	}
}
