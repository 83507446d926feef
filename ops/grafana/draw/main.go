// Command draw makes pictures of the dashboard's panels: it asks a Prometheus each panel's
// own queries and draws what it answers. It is not Grafana, whose pictures look different;
// the numbers are the same. scripts/test-ops -run TestDemo -draw runs it on a storm of the
// demo, and so the pictures in docs/images are made.
//
//	go run . --prometheus http://127.0.0.1:9090 --from 1767225600 --to 1767225660 --out ../../../docs/images
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// options are what the flags say.
type options struct {
	dashboard  string
	prometheus string
	out        string
	from, to   int64 // Unix time
	step       time.Duration
	interval   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.dashboard, "dashboard", "../idem.json", "the dashboard's `FILE`")
	flag.StringVar(&o.prometheus, "prometheus", "http://127.0.0.1:9090", "`URL` of the Prometheus that is asked")
	flag.StringVar(&o.out, "out", ".", "`DIR` that gets the pictures, one for each row: dashboard-NAME.png")
	flag.Int64Var(&o.from, "from", 0, "the first second, as Unix time")
	flag.Int64Var(&o.to, "to", 0, "the last second, as Unix time")
	flag.DurationVar(&o.step, "step", time.Second, "between two points")
	flag.DurationVar(&o.interval, "interval", 4*time.Second, "what $__rate_interval stands for: four scrapes")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.from <= 0 || o.to <= o.from || o.step <= 0 {
		return errors.New("--from and --to must be two times, one after the other, and --step more than nothing")
	}
	rows, err := readRows(o.dashboard)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := drawRow(ctx, o, r, filepath.Join(o.out, "dashboard-"+strings.ToLower(r.title)+".png")); err != nil {
			return fmt.Errorf("row %s: %w", r.title, err)
		}
	}
	return nil
}
