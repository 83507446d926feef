package idem_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// What a program does with bodies, tokens and answers stays out of its log: of a request, of
// an effect and of a task in it. Keys are there, scopes only if they are asked for.
func TestLogEvents_holdNoBodyNoTokenAndNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		observe func(*slog.Logger) func(context.Context, idem.Event)
		scopes  bool
	}{
		"LogEvents": {idem.LogEvents, false},
		"LogEventsWith": {func(l *slog.Logger) func(context.Context, idem.Event) {
			return idem.LogEventsWith(l, idem.LogOptions{Scopes: true})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			log := &syncBuffer{}
			observe := c.observe(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			ended := make(chan struct{})
			db := open(t, pgtest.New(t), idem.Config{Observe: func(ctx context.Context, e idem.Event) {
				observe(ctx, e)
				if e.Kind == idem.EventTask {
					close(ended)
				}
			}})
			everything(t, db, ended)
			text := log.String()
			for _, secret := range []string{"secret-body", "secret-token", "secret-answer", "secret-payload", "secret-result"} {
				if strings.Contains(text, secret) {
					t.Errorf("the log holds %s:\n%s", secret, text)
				}
			}
			for _, want := range []string{"the-key", "task:1", "charge:1", `"outcome":"executed"`, `"outcome":"replayed"`, `"outcome":"mismatch"`,
				`"task_result":"done"`, `"result":"applied"`, "idem route", "idem handler", "idem start"} {
				if !strings.Contains(text, want) {
					t.Errorf("the log does not hold %s:\n%s", want, text)
				}
			}
			if got := strings.Contains(text, "the-scope"); got != c.scopes {
				t.Errorf("the scope is in the log: %v, want %v", got, c.scopes)
			}
		})
	}
}

// everything is a request that enqueues a task, its repeat and a mismatch; and the task.
func everything(t *testing.T, db *idem.DB, ended <-chan struct{}) {
	t.Helper()
	w := queue.NewWorker(db, queue.Config{Poll: 20 * time.Millisecond, Concurrency: 1})
	kind := queue.Define[string]("k", queue.Options{})
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error {
		_, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: "the-scope", Key: "charge:1", Input: "secret-payload"},
			func(context.Context, pgx.Tx) (string, error) { return "secret-result", nil })
		return err
	})
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: func(*http.Request) (string, error) { return "the-scope", nil }})
	if err != nil {
		t.Fatal(err)
	}
	h := guard.Route(idemhttp.Route{Name: "POST /x"})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := kind.Enqueue(r.Context(), idem.Tx(r.Context()), "task:1", "secret-payload"); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte("secret-answer"))
	}))
	for _, body := range []string{"secret-body", "secret-body", "secret-body of another"} {
		r := httptest.NewRequest("POST", "/x", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", "the-key")
		r.Header.Set("Authorization", "Bearer secret-token")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the task did not end")
	}
	stop()
	if err := <-worked; err != nil {
		t.Error(err)
	}
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
