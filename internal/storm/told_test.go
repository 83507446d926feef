package storm_test

import (
	"context"
	"sync"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/storm"
)

// heard are the events of a storm's shops.
type heard struct {
	mu     sync.Mutex
	events []idem.Event
}

func (h *heard) observe(_ context.Context, e idem.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *heard) count(so func(idem.Event) bool) (n int) {
	for _, e := range h.events {
		if so(e) {
			n++
		}
	}
	return n
}

// at are the requests on one route that so holds of.
func (h *heard) at(path string, so func(idem.Event) bool) int {
	return h.count(func(e idem.Event) bool { return e.Kind == idem.EventRequest && e.Route == "POST "+path && so(e) })
}

func every(idem.Event) bool { return true }

// Where nothing is lost on the way, the events are what was sent and answered: as many, and
// of each status and outcome as many.
func TestRun_calmShopsTellExactlyWhatTheyDid(t *testing.T) {
	var h heard
	r := newRig(t).blow(t, storm.Config{Intents: 20, Calm: true, Observe: h.observe})
	if !r.Holds() || r.Kills != (storm.Kills{}) || r.Network.Cuts > 10 {
		t.Fatalf("got %q, %+v, %+v; want a proof without kills", r.Failures(), r.Kills, r.Network)
	}
	outcome := func(path string, o idem.Outcome) int {
		return h.at(path, func(e idem.Event) bool { return e.Outcome == o })
	}
	for _, c := range []storm.Column{r.Guarded, r.Bookings.Column, r.Refunds.Column} {
		if got := h.at(c.Path, every); got != c.Requests {
			t.Errorf("%s: %d requests were told, want %d", c.Path, got, c.Requests)
		}
		answers := 0
		for status, want := range c.Given.Answers {
			answers += want
			if got := h.at(c.Path, func(e idem.Event) bool { return e.Status == status }); got != want {
				t.Errorf("%s: %d answers of %d were told, want %d", c.Path, got, status, want)
			}
		}
		if answers != c.Requests {
			t.Errorf("%s: %d answers for %d requests", c.Path, answers, c.Requests)
		}
		if got := outcome(c.Path, idem.OutcomeReplayed); got != c.Given.Replays {
			t.Errorf("%s: %d replays were told, want %d", c.Path, got, c.Given.Replays)
		}
	}
	for what, c := range map[string][2]int{
		"orders":               {outcome("/orders", idem.OutcomeExecuted), int(r.Guarded.Database.Rows)},
		"mismatches of orders": {outcome("/orders", idem.OutcomeMismatch), r.Guarded.AlteredRefused},
		"bookings":             {outcome("/bookings", idem.OutcomeExecuted), r.Bookings.Won},
		"slots that are taken": {outcome("/bookings", idem.OutcomeRefused), r.Bookings.Lost},
		"refunds":              {outcome("/refunds", idem.OutcomeExecuted), r.Refunds.Promised},
		"payments":             {outcome("/payments", idem.OutcomeExecuted), r.Payments.Paid},
		"keys missing":         {outcome("/orders", idem.OutcomeKeyMissing), 1},
		"keys invalid":         {outcome("/orders", idem.OutcomeKeyInvalid), 2},
		"nobody's":             {outcome("/orders", idem.OutcomeUnauthenticated), 1},
		"bodies too large":     {outcome("/orders", idem.OutcomeBodyTooLarge), 1},
		"not remembered":       {outcome("/orders", idem.OutcomeReleased), 1},
		"tasks done":           {h.count(func(e idem.Event) bool { return e.TaskResult == idem.TaskDone }), int(r.Tasks.Done)},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d were told, want %d", what, c[0], c[1])
		}
	}
}

// What is killed takes along what it was about to tell, and nothing else: every answer that
// has left a shop was told before, and no request is told of that was not sent.
func TestRun_killedShopsAreHeardToTheEnd(t *testing.T) {
	var h heard
	r := newRig(t).blow(t, storm.Config{Intents: 30, Observe: h.observe})
	if !r.Holds() || r.Kills.Shops == 0 {
		t.Fatalf("got %q and %+v; want a proof with kills", r.Failures(), r.Kills)
	}
	for _, c := range []storm.Column{r.Guarded, r.Bookings.Column, r.Payments.Column, r.Refunds.Column} {
		answers := 0
		for status, n := range c.Given.Answers {
			answers += n
			if got := h.at(c.Path, func(e idem.Event) bool { return e.Status == status }); got < n {
				t.Errorf("%s: %d answers of %d were told, and %d were given", c.Path, got, status, n)
			}
		}
		if got := h.at(c.Path, every); got < answers || got > c.Requests {
			t.Errorf("%s: %d requests were told, for %d answers and %d requests", c.Path, got, answers, c.Requests)
		}
	}
	executed := h.at("/orders", func(e idem.Event) bool { return e.Outcome == idem.OutcomeExecuted })
	if rows := int(r.Guarded.Database.Rows); executed > rows || executed == 0 {
		t.Errorf("%d orders were told of, and %d are there", executed, rows)
	}
	starts := h.count(func(e idem.Event) bool { return e.Kind == idem.EventStart })
	if ends := h.count(func(e idem.Event) bool { return e.Kind == idem.EventRequest }); starts != ends {
		t.Errorf("%d starts and %d ends were told", starts, ends)
	}
	for _, e := range h.events {
		if e.Key != "" || e.Scope != "" || e.Effect != "" {
			t.Fatalf("%+v was told", e)
		}
	}
}
