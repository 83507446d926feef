package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// row is a row of the dashboard, with its panels.
type row struct {
	title  string
	panels []panel
}

// panel is what is drawn of a panel of the dashboard.
type panel struct {
	Title   string
	Type    string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr, LegendFormat string }

	FieldConfig struct {
		Defaults struct {
			Unit   string
			Min    *float64
			Max    *float64
			Custom struct{ Stacking struct{ Mode string } }
		}
	}
}

func (p panel) stacked() bool { return p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal" }

// readRows reads a dashboard: each row has the panels that follow it.
func readRows(name string) ([]row, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var rows []row
	for _, p := range dashboard.Panels {
		switch {
		case p.Type == "row":
			rows = append(rows, row{title: p.Title})
		case len(rows) == 0:
			return nil, fmt.Errorf("%s: the panel %q is before the first row", name, p.Title)
		default:
			last := &rows[len(rows)-1]
			last.panels = append(last.panels, p)
		}
	}
	return rows, nil
}

// fill puts values in the place of the dashboard's variables: everything that there is.
func fill(expr string, interval time.Duration) string {
	return strings.NewReplacer(
		"$__rate_interval", fmt.Sprintf("%ds", int(interval.Seconds())),
		"$job", ".*", "$route", ".*", "$queue", ".*").Replace(expr)
}
