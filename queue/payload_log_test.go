package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// A payload that cannot be decoded is quoted neither in the log nor in the task.
func TestLogEvents_holdNothingOfAPayloadThatIsNone(t *testing.T) {
	f := newFloor(t)
	type card struct {
		Number int32     `json:"number"`
		Until  time.Time `json:"until"`
	}
	raw, kind := queue.Define[[]byte]("pay", queue.Options{}), queue.Define[card]("pay", eager)
	for key, payload := range map[string]string{"number": `{"number":4111111111111111}`, "time": `{"until":"4111-secret"}`, "text": `4111 secret`} {
		if _, err := raw.Enqueue(t.Context(), f.pool, key, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	w := f.worker()
	kind.Handle(w, func(context.Context, pgx.Tx, card) error { return nil })
	stop := f.run(w)
	f.untilCount(3, 10*time.Second, "select count(*) from idem.tasks where status = 'failed' and last_error like '%payload is no%'")
	if err := stop(); err != nil {
		t.Error(err)
	}
	f.wantCount(0, "select count(*) from idem.tasks where (last_error || errors::text) ~ '4111|secret'")
	var log bytes.Buffer
	observe := idem.LogEvents(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		observe(t.Context(), e)
	}
	if text := log.String(); strings.Count(text, "payload is no") < 3 || strings.Contains(text, "4111") || strings.Contains(text, "secret") {
		t.Errorf("the log is\n%s", text)
	}
}
