package idem_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/idem-go/idem"
)

func TestLogEvents_levelSaysWhoHasToLook(t *testing.T) {
	cause := errors.New("the cause")
	request := func(outcome idem.Outcome, status int, err error) idem.Event {
		return idem.Event{Kind: idem.EventRequest, Outcome: outcome, Status: status, Err: err}
	}
	task := func(result idem.TaskResult, attempt, takes int, err error) idem.Event {
		return idem.Event{Kind: idem.EventTask, TaskResult: result, TaskID: 1, Attempt: attempt, Takes: takes, Err: err}
	}
	for name, c := range map[string]struct {
		event idem.Event
		level string
	}{
		"executed":                {request(idem.OutcomeExecuted, 201, nil), "INFO"},
		"replayed":                {request(idem.OutcomeReplayed, 201, nil), "INFO"},
		"a refusal":               {request(idem.OutcomeRefused, 409, nil), "INFO"},
		"a malformed key":         {request(idem.OutcomeKeyInvalid, 400, cause), "INFO"},
		"a key that is missing":   {request(idem.OutcomeKeyMissing, 400, cause), "INFO"},
		"another request":         {request(idem.OutcomeMismatch, 409, nil), "INFO"},
		"a body that was cut off": {request(idem.OutcomeReleased, 400, cause), "INFO"},
		"nobody":                  {request(idem.OutcomeUnauthenticated, 401, cause), "INFO"},
		"a bank that is away":     {request(idem.OutcomeReleased, 503, nil), "WARN"},
		"a handler's panic":       {request(idem.OutcomeReleased, 0, idem.ErrPanicked), "WARN"},
		"a remembered failure":    {request(idem.OutcomeRefused, 502, nil), "WARN"},
		"proof of nothing":        {idem.Event{Kind: idem.EventEffect, Result: idem.EffectAbsent, Err: cause}, "INFO"},
		"not applied":             {request(idem.OutcomeReleased, 500, cause), "WARN"},
		"unavailable":             {request(idem.OutcomeUnavailable, 503, cause), "WARN"},
		"withheld":                {request(idem.OutcomeWithheld, 409, nil), "WARN"},
		"unknown":                 {request(idem.OutcomeUnknown, 409, cause), "ERROR"},
		"a panic":                 {idem.Event{Kind: idem.EventPanic, Err: cause}, "ERROR"},
		"a re-run":                {idem.Event{Kind: idem.EventRerun, Err: cause}, "WARN"},
		"a lost lease":            {request(idem.OutcomeLeaseLost, 425, nil), "WARN"},
		"a dead letter":           {idem.Event{Kind: idem.EventTask, TaskResult: idem.TaskFailed, Err: cause}, "ERROR"},
		"an attempt that failed":  {idem.Event{Kind: idem.EventTask, TaskResult: idem.TaskRetried, Err: cause}, "WARN"},
		"done, at once":           {task(idem.TaskDone, 1, 1, nil), "DEBUG"},
		"done, after a failure":   {task(idem.TaskDone, 2, 2, nil), "INFO"},
		"done, after a pause":     {task(idem.TaskDone, 1, 2, nil), "INFO"},
		"a task that waits":       {task(idem.TaskSnoozed, 1, 1, nil), "INFO"},
		"given back at the end":   {task(idem.TaskSnoozed, 1, 1, cause), "INFO"},
		"given back, starved":     {task(idem.TaskSnoozed, 1, 1, fmt.Errorf("%w: no connection", idem.ErrUnavailable)), "WARN"},
		"an effect":               {idem.Event{Kind: idem.EventEffect, Result: idem.EffectSkipped}, "INFO"},
		"an unknown effect":       {idem.Event{Kind: idem.EventEffect, Result: idem.EffectUnknown, Err: cause}, "ERROR"},
		"a fenced write":          {idem.Event{Kind: idem.EventEffect, Result: idem.EffectFenced}, "WARN"},
		"an arrival":              {idem.Event{Kind: idem.EventStart, Route: "r"}, "DEBUG"},
		"a route":                 {idem.Event{Kind: idem.EventRoute, Route: "r"}, "DEBUG"},
		"a kind":                  {idem.Event{Kind: idem.EventHandler, Queue: "q", TaskKind: "k"}, "DEBUG"},
		"a worker in trouble":     {idem.Event{Kind: idem.EventWorker, Err: cause}, "WARN"},
		"a sweep":                 {idem.Event{Kind: idem.EventSweep, Rows: 7}, "INFO"},
		"a cancellation":          {idem.Event{Kind: idem.EventTask, TaskResult: idem.TaskCancelled, Err: cause}, "INFO"},
		"a sweep that failed":     {idem.Event{Kind: idem.EventSweep, Err: cause}, "WARN"},
	} {
		var out bytes.Buffer
		c.event.Scope = "somebody's"
		idem.LogEvents(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))(t.Context(), c.event)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %q is not one line (%v)", name, out.String(), err)
		}
		if line["level"] != c.level {
			t.Errorf("%s is told at %v, want %s", name, line["level"], c.level)
		}
		if bytes.Contains(out.Bytes(), []byte("somebody")) {
			t.Errorf("%s: the scope is in the log: %s", name, out.String())
		}
	}
}

func TestLogEvents_isSilentBelowTheLevelOfTheLogger(t *testing.T) {
	var out bytes.Buffer
	observe := idem.LogEvents(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	observe(t.Context(), idem.Event{Kind: idem.EventRequest, Outcome: idem.OutcomeExecuted, Status: 201})
	if out.Len() != 0 {
		t.Errorf("got %q, want nothing", out.String())
	}
	observe(t.Context(), idem.Event{Kind: idem.EventRequest, Outcome: idem.OutcomeUnknown, Status: 409})
	if out.Len() == 0 {
		t.Error("an unknown outcome was not told")
	}
}
