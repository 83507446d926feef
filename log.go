package idem

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// LogOptions say what LogEventsWith writes beside the rest. The zero value is what
// LogEvents writes.
type LogOptions struct {
	// Scopes adds the scope of requests, and of effects in them. Leave it out where a scope
	// is somebody's name and the log is kept longer than that may be.
	Scopes bool
}

// LogEvents returns a function for Config.Observe that writes every event to
// logger, one line for each: at Error what somebody has to look at (unknown outcomes,
// panics, dead letters), at Warn what has failed and is tried again or answered for (not
// available, withheld, lost leases, every 5xx), at Info every other end of a request, a
// task, an effect or a sweep, and at Debug what is no news: that a request has arrived,
// that a route or a kind is there, and that a task is done at its first attempt, of which
// a worker may have tens of thousands a second. Keys are logged, scopes are not. Safe for
// concurrent use if logger's handler is.
func LogEvents(logger *slog.Logger) func(context.Context, Event) {
	return LogEventsWith(logger, LogOptions{})
}

// LogEventsWith is LogEvents with options.
func LogEventsWith(logger *slog.Logger, o LogOptions) func(context.Context, Event) {
	handler := logger.Handler()
	return func(ctx context.Context, e Event) {
		level := e.level()
		if !handler.Enabled(ctx, level) {
			return
		}
		// Not by the logger, which would look for the line of code: that is this one.
		line := slog.NewRecord(time.Now(), level, "idem "+string(e.Kind), 0)
		var most [maxAttrs]slog.Attr // on the stack
		attrs := e.attrs(most[:0])
		if o.Scopes && e.Scope != "" {
			attrs = append(attrs, slog.String("scope", e.Scope))
		}
		line.AddAttrs(attrs...)
		_ = handler.Handle(ctx, line) // as a slog.Logger does: a log that cannot be written must not stop the work
	}
}

// level is who has to look at an event: see LogEvents.
func (e Event) level() slog.Level {
	switch {
	case e.Kind == EventStart, e.Kind == EventRoute, e.Kind == EventHandler, e.TaskResult == TaskDone && e.Takes == 1:
		return slog.LevelDebug
	case e.Kind == EventPanic, e.Outcome == OutcomeUnknown, e.TaskResult == TaskFailed,
		e.Result == EffectUnknown && !errors.Is(e.Err, errCallsAgain):
		return slog.LevelError
	case e.fails():
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// fails reports whether something has failed that is tried again, or was answered for.
func (e Event) fails() bool {
	switch e.Kind {
	case EventRequest: // one that has panicked has no status
		return e.Status >= 500 || e.Status == 0 || e.Outcome == OutcomeUnavailable || e.Outcome == OutcomeWithheld || e.Outcome == OutcomeLeaseLost
	case EventTask: // one that its handler puts off has not failed, nor one that a worker gives back at its end
		return e.TaskResult == TaskRetried || e.TaskResult == TaskLeaseLost || e.TaskResult == TaskSnoozed && errors.Is(e.Err, ErrUnavailable)
	case EventEffect:
		return e.Result == EffectFenced || e.Result == EffectUnknown
	default:
		return e.Err != nil
	}
}

// maxAttrs is about how many attributes an event has at most.
const maxAttrs = 16

// attrs appends the attributes of an event: what is empty or zero is left out.
func (e Event) attrs(attrs []slog.Attr) []slog.Attr {
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("route", e.Route)
	text("key", e.Key)
	text("request", e.Request)
	text("first_request", e.FirstRequest)
	text("outcome", string(e.Outcome))
	text("queue", e.Queue)
	text("kind", e.TaskKind)
	text("task_result", string(e.TaskResult))
	if e.TaskID != 0 {
		attrs = append(attrs, slog.Int64("task_id", e.TaskID), slog.Int("attempt", e.Attempt))
	}
	if e.Takes > 1 {
		attrs = append(attrs, slog.Int("takes", e.Takes))
	}
	text("effect", e.Effect)
	text("result", string(e.Result))
	if e.Attempted {
		attrs = append(attrs, slog.Bool("attempted", true))
	}
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if e.Elapsed != 0 {
		attrs = append(attrs, slog.Duration("elapsed", e.Elapsed))
	}
	if e.Waited != 0 {
		attrs = append(attrs, slog.Duration("waited", e.Waited))
	}
	if e.Delay != 0 {
		attrs = append(attrs, slog.Duration("delay", e.Delay))
	}
	text("table", e.Table)
	if e.Rows != 0 {
		attrs = append(attrs, slog.Int64("rows", e.Rows))
	}
	if e.Stripped != 0 {
		attrs = append(attrs, slog.Int64("stripped", e.Stripped))
	}
	if e.Lag != 0 {
		attrs = append(attrs, slog.Duration("lag", e.Lag))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	return attrs
}
