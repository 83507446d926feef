// Package watched is how a program that is watched opens the library.
package watched

import (
	"context"
	"log/slog"
	"os"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// Quiet has metrics, and lines of JSON for what idem.LogEvents tells by default.
func Quiet() (idem.Config, error) { return observed(slog.LevelInfo, nil) }

// Verbose is the same with a line for everything, each task among it.
func Verbose() (idem.Config, error) { return observed(slog.LevelDebug, nil) }

// observed makes metrics of every event, and a line in JSON, which is written to
// /dev/null: it costs what it costs to make and to hand to the kernel, without the disk.
func observed(level slog.Level, traceID func(context.Context) string) (config idem.Config, err error) {
	m, err := metrics.New(metrics.Config{Registerer: prometheus.NewRegistry(), TraceID: traceID})
	if err != nil {
		return config, err
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return config, err
	}
	log := idem.LogEvents(slog.New(slog.NewJSONHandler(nowhere, &slog.HandlerOptions{Level: level})))
	config.Observe = func(ctx context.Context, e idem.Event) {
		m.Observe(ctx, e)
		log(ctx, e)
	}
	return config, nil
}
