package metrics_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

func TestLabels_areBounded(t *testing.T) {
	m := measure(t, metrics.Config{})
	for i := range metrics.MaxRoutes + 50 {
		m.Observe(t.Context(), idem.Event{Kind: idem.EventStart, Route: fmt.Sprint("route ", i)})
		m.Observe(t.Context(), idem.Event{Kind: idem.EventRequest, Route: fmt.Sprint("route ", i), Outcome: idem.OutcomeExecuted})
	}
	for i := range metrics.MaxKinds + 70 {
		m.Observe(t.Context(), idem.Event{Kind: idem.EventTask, Queue: fmt.Sprint("q", i%3), TaskKind: fmt.Sprint("kind ", i), TaskResult: idem.TaskDone, Attempt: 1})
	}
	m.want(t, map[string]float64{
		`idem_requests_total{outcome="executed",route="other"}`:                                      50,
		`idem_requests_total{outcome="executed",route="route 0"}`:                                    1,
		`idem_in_flight{route="other"}`:                                                              0,
		`idem_tasks_total{kind="other",queue="other",result="done"}`:                                 70,
		fmt.Sprintf(`idem_tasks_total{kind="kind %d",queue="q0",result="done"}`, 0):                  1,
		fmt.Sprintf(`idem_requests_total{outcome="executed",route="route %d"}`, metrics.MaxRoutes-1): 1,
	})
	count := 0
	for name := range m.scrape(t) {
		if strings.HasPrefix(name, `idem_requests_total{outcome="executed"`) {
			count++
		}
	}
	if count != metrics.MaxRoutes+1 {
		t.Errorf("%d routes have a label, want %d and other", count, metrics.MaxRoutes)
	}
}

// Nothing that an event says of a request beside its route and its outcome is a label, and
// what Prometheus does not take is none either.
func TestLabels_holdNoKeyNoScopeAndNoOddBytes(t *testing.T) {
	m := measure(t, metrics.Config{})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventRequest, Route: "odd \xff", Scope: "my scope", Key: "my key", Outcome: idem.OutcomeExecuted, Err: fmt.Errorf("my error")})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventEffect, Scope: "my scope", Effect: "my effect", Result: idem.EffectApplied})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventRequest, Route: "r", Outcome: "my outcome"})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventTask, Queue: "q", TaskKind: "k", Key: "my key", TaskResult: "my result"})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventEffect, Result: "my result"})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventSweep, Table: "my table"})
	text := m.text(t, "text/plain")
	if strings.Contains(text, "my ") {
		t.Errorf("the scrape holds what it must not:\n%s", text)
	}
	if !strings.Contains(text, `route="odd ?"`) {
		t.Error("the odd route is not there")
	}
}

func TestNew_refusesARegistryThatHasThem(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := metrics.New(metrics.Config{Registerer: registry}); err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.New(metrics.Config{Registerer: registry}); err == nil || !strings.Contains(err.Error(), "another registry") {
		t.Errorf("got %v, want to be told what to do", err)
	}
}

func TestExemplars_nameTheTraceWhereThereIsOne(t *testing.T) {
	type trace struct{}
	m := measure(t, metrics.Config{TraceID: func(ctx context.Context) string {
		id, _ := ctx.Value(trace{}).(string)
		return id
	}})
	end := idem.Event{Kind: idem.EventRequest, Route: "r", Outcome: idem.OutcomeReplayed, Elapsed: time.Millisecond, Waited: time.Millisecond}
	task := idem.Event{Kind: idem.EventTask, Queue: "q", TaskKind: "k", TaskResult: idem.TaskDone, Attempt: 1, Elapsed: time.Millisecond}
	for _, id := range []string{"", "\xff", strings.Repeat("x", 200)} { // none that could be shown
		m.Observe(context.WithValue(t.Context(), trace{}, id), end)
	}
	if text := m.text(t, "application/openmetrics-text; version=1.0.0"); strings.Contains(text, "trace_id") {
		t.Errorf("an exemplar without a trace:\n%s", text)
	}
	ctx := context.WithValue(t.Context(), trace{}, "4bf92f3577b34da6a3ce929d0e0e4736")
	m.Observe(ctx, end)
	m.Observe(ctx, task)
	text := m.text(t, "application/openmetrics-text; version=1.0.0")
	for _, metric := range []string{"idem_requests_total", "idem_request_seconds_bucket", "idem_wait_seconds_bucket", "idem_tasks_total", "idem_task_seconds_bucket"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, metric+"{") && strings.Contains(line, `# {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"}`)
		}
		if !found {
			t.Errorf("%s has no exemplar", metric)
		}
	}
}

// What is counted for each request and task costs no memory.
func TestObserve_allocatesNothing(t *testing.T) {
	m := measure(t, metrics.Config{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		m.Observe(ctx, idem.Event{Kind: idem.EventStart, Route: "r"})
		m.Observe(ctx, idem.Event{Kind: idem.EventRequest, Route: "r", Outcome: idem.OutcomeReplayed, Elapsed: time.Millisecond, Waited: time.Millisecond})
		m.Observe(ctx, idem.Event{Kind: idem.EventTask, Queue: "q", TaskKind: "k", TaskResult: idem.TaskDone, Attempt: 1, Elapsed: time.Millisecond})
		m.Observe(ctx, idem.Event{Kind: idem.EventEffect, Result: idem.EffectSkipped})
	}); n != 0 {
		t.Errorf("%v allocations for a request, a task and an effect, want none", n)
	}
}
