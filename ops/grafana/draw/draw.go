package main

import (
	"context"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	// column is the width of one of the dashboard's 24 columns, and cell the height of one
	// line of its grid.
	column, cell vg.Length = 38, 26 // points
	// margin is around each panel.
	margin vg.Length = 8
	// line is the height of a line of a legend, of which there are two columns.
	line vg.Length = 11
	// dpi makes a picture twice as fine as points are.
	dpi = 144
)

// colours are first those of Okabe and Ito, which whoever is colour-blind can tell apart.
var colours = []color.NRGBA{{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {213, 94, 0, 255},
	{86, 180, 233, 255}, {204, 121, 167, 255}, {120, 120, 120, 255}, {0, 0, 0, 255},
	{110, 60, 150, 255}, {130, 90, 40, 255}, {190, 180, 40, 255}, {150, 20, 40, 255}}

// drawRow draws the panels of a row into one picture, each at its place in the grid.
func drawRow(ctx context.Context, o options, r row, name string) error {
	top, bottom := math.MaxInt, 0
	for _, p := range r.panels {
		top, bottom = min(top, p.GridPos.Y), max(bottom, p.GridPos.Y+p.GridPos.H)
	}
	height := vg.Length(bottom-top) * cell
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	picture := vgimg.NewWith(vgimg.UseWH(24*column, height), vgimg.UseDPI(dpi))
	canvas := draw.New(picture)
	for _, p := range r.panels {
		lines, err := ask(ctx, o, p)
		if err != nil {
			return err
		}
		g := p.GridPos
		at := canvas
		at.Min = vg.Point{X: vg.Length(g.X)*column + margin, Y: height - vg.Length(g.Y-top+g.H)*cell + margin}
		at.Max = vg.Point{X: vg.Length(g.X+g.W)*column - margin, Y: height - vg.Length(g.Y-top)*cell - margin}
		if err := drawPanel(at, o, p, lines); err != nil {
			return err
		}
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: picture}).WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// drawPanel draws one panel, with its lines' names below it.
func drawPanel(at draw.Canvas, o options, p panel, all []series) error {
	chart := plot.New()
	chart.Title.Text = p.Title
	chart.Title.TextStyle.Font.Size = font.Points(10)
	chart.X.Tick.Marker, chart.Y.Tick.Marker = plot.TickerFunc(seconds), ticks{p.FieldConfig.Defaults.Unit}
	chart.X.Tick.Label.Font.Size, chart.Y.Tick.Label.Font.Size = font.Points(7), font.Points(7)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{230}, color.Gray{230}
	chart.Add(grid)
	chart.X.Min, chart.X.Max = 0, float64(o.to-o.from)
	names, err := drawLines(chart, o, p, all)
	if err != nil {
		return err
	}
	limits := p.FieldConfig.Defaults
	if limits.Min != nil {
		chart.Y.Min = *limits.Min
	}
	switch {
	case limits.Max != nil:
		chart.Y.Max = *limits.Max
	case chart.Y.Max <= chart.Y.Min: // all is zero, or there is nothing
		chart.Y.Max = chart.Y.Min + 1
	default:
		chart.Y.Max *= 1.05 // room above the highest line
	}
	below := vg.Length((len(all)+1)/2) * line
	upper := at
	upper.Min.Y += below + margin/2
	chart.Draw(upper)
	drawLegend(at, names, below)
	return nil
}

// drawLines adds the lines of a panel, one upon the other where it stacks them.
func drawLines(chart *plot.Plot, o options, p panel, all []series) (names []plot.Legend, err error) {
	sum := make([]float64, points(o))
	names = []plot.Legend{plot.NewLegend(), plot.NewLegend()}
	for i, s := range all {
		colour := colours[i%len(colours)]
		shown, floor := s.values, append([]float64{}, sum...)
		if p.stacked() {
			shown = stack(sum, s.values)
			if err := drawArea(chart, shown, floor, o, colour); err != nil {
				return nil, err
			}
		}
		style := draw.LineStyle{Color: colour, Width: vg.Points(1)}
		for _, part := range parts(shown, o) {
			l, err := plotter.NewLine(part)
			if err != nil {
				return nil, err
			}
			if l.LineStyle = style; !p.stacked() || some(s.values) {
				chart.Add(l)
			}
		}
		names[i%2].Add(s.name, &plotter.Line{LineStyle: style})
	}
	return names, nil
}

// stack adds a line to the sum of those below it, and returns where it then lies.
func stack(sum, values []float64) (shown []float64) {
	for at, v := range values {
		if !math.IsNaN(v) {
			sum[at] += v
		}
	}
	return append(shown, sum...)
}

// parts are the pieces of a line between the times at which it has no value.
func parts(values []float64, o options) (all []plotter.XYs) {
	var part plotter.XYs
	for at, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			part = append(part, plotter.XY{X: float64(at) * o.step.Seconds(), Y: v})
		} else if len(part) > 0 {
			all, part = append(all, part), nil
		}
	}
	if len(part) > 0 {
		all = append(all, part)
	}
	return all
}

// some reports whether a line is anything but zero; one that is not would hide what it lies
// upon.
func some(values []float64) bool {
	for _, v := range values {
		if v != 0 && !math.IsNaN(v) {
			return true
		}
	}
	return false
}

// drawArea fills what is between a stacked line and those below it.
func drawArea(chart *plot.Plot, upper, floor []float64, o options, colour color.NRGBA) error {
	var around plotter.XYs
	for at, v := range upper {
		around = append(around, plotter.XY{X: float64(at) * o.step.Seconds(), Y: v})
	}
	for at := len(floor) - 1; at >= 0; at-- {
		around = append(around, plotter.XY{X: float64(at) * o.step.Seconds(), Y: floor[at]})
	}
	area, err := plotter.NewPolygon(around)
	if err != nil {
		return err
	}
	colour.A = 70
	area.Color, area.LineStyle.Width = colour, 0
	chart.Add(area)
	return nil
}

// drawLegend draws the names of a panel's lines, in two columns at its lower edge.
func drawLegend(at draw.Canvas, names []plot.Legend, height vg.Length) {
	half := (at.Max.X - at.Min.X) / 2
	for i := range names {
		l := &names[i]
		l.Top, l.Left = true, true
		l.TextStyle.Font.Size = font.Points(7)
		l.ThumbnailWidth = vg.Points(12)
		l.Padding = vg.Points(1)
		box := at
		box.Max.Y = at.Min.Y + height
		box.Min.X += vg.Length(i) * half
		l.Draw(box)
	}
}

// seconds marks the time since the beginning.
func seconds(low, high float64) (all []plot.Tick) {
	step := 5.0
	for (high-low)/step > 8 {
		step *= 2
	}
	for at := math.Ceil(low/step) * step; at <= high; at += step {
		all = append(all, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', -1, 64) + " s"})
	}
	return all
}
