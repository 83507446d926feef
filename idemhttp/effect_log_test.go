package idemhttp_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// wantCallsAgain fails unless every unknown effect that was told says whether the next retry
// calls again.
func (r *rig) wantCallsAgain(want bool) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Result == idem.EffectUnknown && strings.Contains(e.Err.Error(), "calls again, with the same key") != want {
			r.t.Errorf("it is told that %v; the next retry calls again: %v", e.Err, want)
		}
	}
}

// An effect that nobody knows wakes somebody if it has to be settled, and nobody if the next
// retry finds it out.
func TestLogEvents_sayWhetherAnUnknownEffectIsToBeSettled(t *testing.T) {
	for name, c := range map[string]struct {
		effect       idem.Effect
		level, words string
	}{
		"keyed":   {charge(), "WARN", "the next retry or attempt calls again, with the same key"},
		"keyless": {keyless(), "ERROR", "whether the effect was applied is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			b := newLedgerBank(t, c.effect.Provider == idem.Provider{}, slices.Repeat([]trouble{stallAfter}, 10)...)
			e := c.effect
			e.Timeout = 300 * time.Millisecond
			r.paying(b, e, idemhttp.Route{Lease: 2 * time.Second, Limit: time.Second})
			r.serve()
			_ = r.send(post("/pay", "k", "{}"))
			r.server.Close()
			var log bytes.Buffer
			observe := idem.LogEvents(slog.New(slog.NewTextHandler(&log, nil)))
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, e := range r.events {
				if e.Kind == idem.EventEffect {
					observe(t.Context(), e)
				}
			}
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level="+c.level) || !strings.Contains(text, c.words) {
				t.Errorf("the log is %q, want one line at %s with %q", text, c.level, c.words)
			}
		})
	}
}
