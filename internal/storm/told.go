package storm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// told is an event of a shop process as it travels to the storm: what is counted of it, and
// neither keys nor scopes.
type told struct {
	Kind       idem.EventKind    `json:"kind"`
	Route      string            `json:"route,omitempty"`
	Outcome    idem.Outcome      `json:"outcome,omitempty"`
	Status     int               `json:"status,omitempty"`
	Elapsed    time.Duration     `json:"elapsed,omitempty"`
	Waited     time.Duration     `json:"waited,omitempty"`
	Table      string            `json:"table,omitempty"`
	Rows       int64             `json:"rows,omitempty"`
	Stripped   int64             `json:"stripped,omitempty"`
	Lag        time.Duration     `json:"lag,omitempty"`
	Result     idem.EffectResult `json:"result,omitempty"`
	Queue      string            `json:"queue,omitempty"`
	TaskKind   string            `json:"task_kind,omitempty"`
	TaskResult idem.TaskResult   `json:"task_result,omitempty"`
	Attempt    int               `json:"attempt,omitempty"`
	Delay      time.Duration     `json:"delay,omitempty"`
	Attempted  bool              `json:"attempted,omitempty"`
	Failed     bool              `json:"failed,omitempty"` // it has an error
}

var errTold = errors.New("the shop's process knows why")

func toldOf(e idem.Event) told {
	return told{Kind: e.Kind, Route: e.Route, Outcome: e.Outcome, Status: e.Status, Elapsed: e.Elapsed, Waited: e.Waited,
		Table: e.Table, Rows: e.Rows, Stripped: e.Stripped, Lag: e.Lag, Result: e.Result, Queue: e.Queue, TaskKind: e.TaskKind,
		TaskResult: e.TaskResult, Attempt: e.Attempt, Delay: e.Delay, Attempted: e.Attempted, Failed: e.Err != nil}
}

func (t told) event() idem.Event {
	e := idem.Event{Kind: t.Kind, Route: t.Route, Outcome: t.Outcome, Status: t.Status, Elapsed: t.Elapsed, Waited: t.Waited,
		Table: t.Table, Rows: t.Rows, Stripped: t.Stripped, Lag: t.Lag, Result: t.Result, Queue: t.Queue, TaskKind: t.TaskKind,
		TaskResult: t.TaskResult, Attempt: t.Attempt, Delay: t.Delay, Attempted: t.Attempted}
	if t.Failed {
		e.Err = errTold
	}
	return e
}

// teller writes what a shop process tells, a line for each event, as soon as it happens: a
// line that is in the pipe is read also when the process is killed.
type teller struct {
	mu  sync.Mutex // held until the process has said that it is ready, which is its first line
	out *json.Encoder
}

// newTeller returns one that holds all events back until begin.
func newTeller(out io.Writer) *teller {
	t := &teller{out: json.NewEncoder(out)}
	t.mu.Lock()
	return t
}

// begin writes the first line and lets the events follow.
func (t *teller) begin(ready shopReady) error {
	defer t.mu.Unlock()
	return t.out.Encode(ready)
}

func (t *teller) observe(_ context.Context, e idem.Event) {
	if e.Kind == idem.EventStart {
		return // see hear
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.out.Encode(toldOf(e)) // who does not read it is gone, and this process ends
}

// hear hands the next event of a shop process to observe. A request's start is told
// together with its end: a process that is killed leaves starts without one.
func hear(lines *json.Decoder, observe func(context.Context, idem.Event)) error {
	var t told
	if err := lines.Decode(&t); err != nil {
		return err
	}
	if observe == nil {
		return nil
	}
	e := t.event()
	if e.Kind == idem.EventRequest {
		observe(context.Background(), idem.Event{Kind: idem.EventStart, Route: e.Route})
	}
	observe(context.Background(), e)
	return nil
}
