package idemhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// documents serves a route that replays the resource as it is now.
type documents struct {
	*rig
	gate  *gate // held by the handler, if not nil
	runs  atomic.Int64
	fetch func(w http.ResponseWriter, r *http.Request, ref string)
}

func newDocuments(t *testing.T) *documents {
	d := &documents{rig: newRig(t)}
	route := idemhttp.Route{MaxStored: 10, Replay: idemhttp.ReplayResource,
		Fetch: func(w http.ResponseWriter, r *http.Request, ref string) { d.fetch(w, r, ref) }}
	d.handle("/documents", route, func(w http.ResponseWriter, r *http.Request) {
		n := d.runs.Add(1)
		if d.gate != nil {
			d.gate.pass()
		}
		if err := insertOrder(r); err != nil {
			panic(err)
		}
		said, _ := io.ReadAll(r.Body)
		if string(said) != "none" {
			idem.Reference(r.Context(), "not this one")
			idem.Reference(r.Context(), fmt.Sprint("documents/", n))
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Location", fmt.Sprint("/documents/", n))
		if status := map[string]int{"refuse": http.StatusConflict, "fail": http.StatusUnprocessableEntity}[string(said)]; status != 0 {
			w.WriteHeader(status)
			_, _ = w.Write(said)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "a first edition, longer than what may be stored")
	})
	d.serve()
	return d
}

func TestResource_repeatFetchesItAsItIsNow(t *testing.T) {
	d := newDocuments(t)
	d.fetch = func(w http.ResponseWriter, r *http.Request, ref string) {
		said, _ := io.ReadAll(r.Body)
		_, err := idem.TxFrom(r.Context())
		_, _ = fmt.Fprintf(w, "second edition of %s for %s, no transaction: %v", ref, said, errors.Is(err, idem.ErrNoExecution))
	}
	first := d.send(post("/documents", "k", "write"))
	d.want(first, 201, "")
	if first.body != "a first edition, longer than what may be stored" {
		t.Errorf("the first got %q", first.body)
	}
	got := d.send(post("/documents", "k", "write"))
	d.want(got, 201, "")
	if want := "second edition of documents/1 for write, no transaction: true"; got.body != want {
		t.Errorf("the repeat got %q, want %q", got.body, want)
	}
	if !got.replayed() || got.header.Get("Location") != "/documents/1" || got.header.Get("Content-Type") != "text/plain" || d.runs.Load() != 1 {
		t.Errorf("the repeat got %v after %d runs", got.header, d.runs.Load())
	}
	d.wantRows("select count(*) from idem.idempotency_keys where response_body is null and reference = 'documents/1'", 1)
}

func TestResource_fetchMayAnswerItsOwnStatusOrNothing(t *testing.T) {
	d := newDocuments(t)
	d.want(d.send(post("/documents", "k", "write")), 201, "")
	d.fetch = func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Del("Location")
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, "deleted")
	}
	if got := d.send(post("/documents", "k", "write")); got.status != 410 || got.body != "deleted" || got.header.Get("Location") != "" || !got.replayed() {
		t.Errorf("got %d %q %v, want 410 deleted", got.status, got.body, got.header)
	}
	d.fetch = func(http.ResponseWriter, *http.Request, string) {}
	if got := d.send(post("/documents", "k", "write")); got.status != 201 || got.body != "" {
		t.Errorf("got %d %q, want the stored status without a body", got.status, got.body)
	}
	d.fetch = func(w http.ResponseWriter, _ *http.Request, _ string) { // informational first
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "now")
	}
	if got := d.send(post("/documents", "k", "write")); got.status != 201 || got.body != "now" {
		t.Errorf("got %d %q, want 201 now", got.status, got.body)
	}
}

func TestResource_successWithoutAReferenceIsNotApplied(t *testing.T) {
	d := newDocuments(t)
	for range 2 {
		d.want(d.send(post("/documents", "k", "none")), 500, "not-applied")
	}
	d.wantFree()
	d.wantRows("select count(*) from orders", 0)
	if n := d.runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
}

func TestResource_waitersFetchToo(t *testing.T) {
	d := newDocuments(t)
	d.gate = newGate(t)
	var fetched atomic.Int64
	d.fetch = func(w http.ResponseWriter, _ *http.Request, ref string) {
		fetched.Add(1)
		_, _ = io.WriteString(w, "now: "+ref)
	}
	first := d.begin(post("/documents", "k", "write"))
	d.gate.inside(t)
	others := d.beginMany(3, post("/documents", "k", "write"))
	d.waiters("k", 3)
	d.gate.release()
	d.want(<-first, 201, "")
	for _, other := range others {
		if got := <-other; got.status != 201 || got.body != "now: documents/1" || !got.replayed() {
			t.Errorf("a waiter got %d %q, replayed %v", got.status, got.body, got.replayed())
		}
	}
	if fetched.Load() != 3 || d.runs.Load() != 1 {
		t.Errorf("fetched %d times after %d runs, want 3 after 1", fetched.Load(), d.runs.Load())
	}
}

// A reference names what was committed. A refusal committed nothing, so its own
// bytes are what repeats and waiters get.
func TestResource_refusalsAndFailuresKeepTheirBytes(t *testing.T) {
	d := newDocuments(t)
	d.fetch = func(http.ResponseWriter, *http.Request, string) { t.Error("fetched for what was not committed") }
	for _, said := range []string{"refuse", "fail"} {
		d.gate = newGate(t)
		first := d.begin(post("/documents", said, said))
		d.gate.inside(t)
		other := d.begin(post("/documents", said, said))
		d.waiters(said, 1)
		d.gate.release()
		one, two := <-first, <-other
		want := map[string]int{"refuse": 409, "fail": 422}[said]
		if one.status != want || one.body != said || two.status != want || two.body != one.body {
			t.Errorf("%s: the first got %d %q, the waiter %d %q", said, one.status, one.body, two.status, two.body)
		}
	}
	if got := d.send(post("/documents", "refuse", "refuse")); got.status != 409 || got.body != "refuse" || !got.replayed() {
		t.Errorf("the repeat got %d %q, replayed %v", got.status, got.body, got.replayed())
	}
	d.wantRows("select count(*) from idem.idempotency_keys where reference is null and response_body = 'refuse'", 1)
	d.wantRows("select count(*) from idem.idempotency_keys", 1)
}

func TestReference_panicsOnWhatCannotBeStored(t *testing.T) {
	r := newRig(t)
	var outside recoverer
	references := map[string]string{"empty": "", "NUL": "a\x00b", "not UTF-8": "a\xff", "too long": strings.Repeat("x", idem.MaxReference+1)}
	r.handle("/x", idemhttp.Route{Replay: idemhttp.ReplayResource, Fetch: func(http.ResponseWriter, *http.Request, string) {}}, func(w http.ResponseWriter, req *http.Request) {
		idem.Reference(req.Context(), references[req.Header.Get("X-Reference")])
		w.WriteHeader(http.StatusCreated)
	})
	r.wrap = outside.wrap
	r.serve()
	for name := range references {
		r.want(r.send(post("/x", "k", "{}").with("X-Reference", name)), http.StatusTeapot, "")
	}
	r.wantFree()
}

func TestReplayCheck_asksForReplaysAndWaitersOnly(t *testing.T) {
	r := newRig(t)
	var g *gate
	var runs, asked atomic.Int64
	route := idemhttp.Route{ReplayCheck: func(req *http.Request, a idem.Answer) error {
		asked.Add(1)
		said, _ := io.ReadAll(req.Body)
		if a.Status != 201 && a.Status != 422 || string(said) == "" {
			return fmt.Errorf("asked about %d with the body %q", a.Status, said)
		}
		switch req.Header.Get("X-Right") {
		case "lost":
			return errors.New("the order was moved to another account")
		case "unknown":
			return fmt.Errorf("rights: %w", idem.ErrUnavailable)
		}
		return nil
	}}
	r.handle("/x", route, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		said, _ := io.ReadAll(req.Body)
		g.pass()
		if string(said) == "422" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "secret")
	})
	r.serve()
	for _, said := range []string{"201", "422"} {
		g = newGate(t)
		asked.Store(0)
		s := post("/x", said, said)
		first := r.begin(s)
		g.inside(t)
		kept, lost, unknown := r.begin(s), r.begin(s.with("X-Right", "lost")), r.begin(s.with("X-Right", "unknown"))
		r.waiters(said, 3)
		g.release()
		if got := <-first; fmt.Sprint(got.status) != said {
			t.Errorf("the first got %d, want %s", got.status, said)
		}
		if got := <-kept; fmt.Sprint(got.status) != said {
			t.Errorf("a waiter with the right got %d, want %s", got.status, said)
		}
		r.want(<-lost, 403, "replay-refused")
		r.want(<-unknown, 503, "unavailable")
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times, want 3: not for the one that ran", n)
		}
	}
	s := post("/x", "201", "201")
	r.want(r.send(s.with("X-Right", "lost")), 403, "replay-refused")
	r.want(r.send(s.with("X-Right", "unknown")), 503, "unavailable")
	if got := r.send(s); got.status != 201 || got.body != "secret" || !got.replayed() {
		t.Errorf("the repeat got %d %q", got.status, got.body)
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
}
