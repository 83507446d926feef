package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// series is one line of a panel: a value for each point in time, NaN where there is none.
type series struct {
	name   string
	values []float64
}

// answer is what Prometheus says to a query over a range of time.
type answer struct {
	Status string
	Error  string
	Data   struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any // time, value as text
		}
	}
}

// ask asks what a panel shows, in the order of its queries and then of the names.
func ask(ctx context.Context, o options, p panel) (all []series, err error) {
	for _, target := range p.Targets {
		expr := fill(target.Expr, o.interval)
		a, err := query(ctx, o, expr)
		if err != nil {
			return nil, fmt.Errorf("panel %s: %s: %w", p.Title, expr, err)
		}
		named := map[string]series{}
		for _, r := range a.Data.Result {
			s := series{name: legend(target.LegendFormat, r.Metric), values: make([]float64, points(o))}
			for i := range s.values {
				s.values[i] = math.NaN()
			}
			for _, v := range r.Values {
				at, isTime := v[0].(float64)
				text, isText := v[1].(string)
				value, err := strconv.ParseFloat(text, 64)
				if !isTime || !isText || err != nil {
					return nil, fmt.Errorf("panel %s: a point that is none: %v", p.Title, v)
				}
				if i := int(math.Round((at - float64(o.from)) / o.step.Seconds())); i >= 0 && i < len(s.values) {
					s.values[i] = value
				}
			}
			named[s.name] = s
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			all = append(all, named[name])
		}
	}
	return all, nil
}

// points is how many points in time there are.
func points(o options) int { return int(float64(o.to-o.from)/o.step.Seconds()) + 1 }

func query(ctx context.Context, o options, expr string) (a answer, err error) {
	form := url.Values{"query": {expr}, "start": {strconv.FormatInt(o.from, 10)}, "end": {strconv.FormatInt(o.to, 10)},
		"step": {strconv.FormatFloat(o.step.Seconds(), 'f', -1, 64)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.prometheus+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return a, fmt.Errorf("%s: %w", res.Status, err)
	}
	if a.Status != "success" {
		return a, fmt.Errorf("%s: %s", res.Status, a.Error)
	}
	return a, nil
}

var label = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// legend puts a line's labels into the format of its name.
func legend(format string, labels map[string]string) string {
	return label.ReplaceAllStringFunc(format, func(found string) string {
		return labels[label.FindStringSubmatch(found)[1]]
	})
}
