package main

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// ticks marks a panel's values in its unit, as far as the dashboard uses any.
type ticks struct{ unit string }

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(low, high)
	for i := range all {
		if all[i].Label != "" {
			all[i].Label = write(all[i].Value, t.unit)
		}
	}
	return all
}

// write writes a value in a unit of Grafana's.
func write(value float64, unit string) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	switch {
	case unit == "percentunit":
		return number(value*100) + " %"
	case unit == "s" && value != 0 && math.Abs(value) < 1:
		return number(value*1000) + " ms"
	case unit == "s":
		return number(value) + " s"
	case unit == "reqps", unit == "ops":
		return number(value) + "/s"
	}
	return number(value)
}
