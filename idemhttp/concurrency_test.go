package idemhttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// slow serves an order whose handler stops at a gate and then answers the
// status that the body says.
type slow struct {
	*rig
	*gate
	runs atomic.Int64
}

func newSlow(r *rig, route idemhttp.Route) *slow {
	s := &slow{rig: r}
	r.handle("/slow", route, func(w http.ResponseWriter, req *http.Request) {
		if !r.lazy {
			s.runs.Add(1)
		}
		said, _ := io.ReadAll(req.Body)
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		if r.lazy { // what ran before the first statement does not count
			s.runs.Add(1)
		}
		n := s.runs.Load()
		s.pass()
		status, _ := strconv.Atoi(string(said))
		w.Header().Set("Location", "/orders/1")
		w.Header().Set("X-Request-Id", "first")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "run "+strconv.FormatInt(n, 10))
	})
	r.serve()
	s.gate = newGate(r.t)
	return s
}

// poolOf is a pool of n connections on a database of its own.
func poolOf(t *testing.T, url string, n int32) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = n
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestC1_duplicateWaitsAndGetsTheReplay(t *testing.T) {
	s := newSlow(newRig(t), idemhttp.Route{})
	first := s.begin(post("/slow", "k", "201"))
	s.inside(t)
	second := s.begin(post("/slow", "k", "201"))
	s.waiters("k", 1)
	select {
	case got := <-second:
		t.Fatalf("the duplicate did not wait: %d %s", got.status, got.body)
	case <-time.After(50 * time.Millisecond):
	}
	s.release()
	one, two := <-first, <-second
	s.want(one, 201, "")
	s.want(two, 201, "")
	if one.replayed() || !two.replayed() || one.body != two.body || two.header.Get("Location") == "" || two.header.Get("X-Request-Id") != "" {
		t.Errorf("first %v %q, duplicate %v %q", one.header, one.body, two.header, two.body)
	}
	s.wantRows("select count(*) from orders", 1)
}

func TestC2_duplicateOfALongRequestIsToldToComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		profile idemhttp.Profile
		route   idemhttp.Route
		status  int
	}{
		"article":         {idemhttp.Article, idemhttp.Route{Wait: 50 * time.Millisecond}, 425},
		"ietf":            {idemhttp.IETF, idemhttp.Route{Wait: 50 * time.Millisecond}, 409},
		"202 by option":   {idemhttp.Article, idemhttp.Route{Wait: 50 * time.Millisecond, InFlight202: true}, 202},
		"no wait at all":  {idemhttp.Article, idemhttp.Route{Wait: -1}, 425},
		"202 and no wait": {idemhttp.IETF, idemhttp.Route{Wait: -1, InFlight202: true}, 202},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlow(newRig(t, func(config *idemhttp.Config) { config.Profile = c.profile }), c.route)
			first := s.begin(post("/slow", "k", "201"))
			s.inside(t)
			got := s.send(post("/slow", "k", "201"))
			s.want(got, c.status, "in-flight")
			if after, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || after < 1 {
				t.Errorf("Retry-After is %q, want at least 1", got.header.Get("Retry-After"))
			}
			var p struct {
				Status     int
				Retryable  bool
				SafeNewKey *bool `json:"safe_new_key"`
			}
			if err := json.Unmarshal([]byte(got.body), &p); err != nil || p.Status != c.status || !p.Retryable || p.SafeNewKey == nil || *p.SafeNewKey {
				t.Errorf("the problem is %s (%v)", got.body, err)
			}
			s.release()
			one := <-first
			s.want(one, 201, "")
			if later := s.send(post("/slow", "k", "201")); later.status != 201 || !later.replayed() || later.body != one.body {
				t.Errorf("a later retry got %d %q, replayed %v", later.status, later.body, later.replayed())
			}
			s.wantRows("select count(*) from orders", 1)
		})
	}
}

func TestC3_poolOfOneConnectionServesAll(t *testing.T) {
	r := rigOn(t, poolOf(t, pgtest.NewURL(t), 1))
	s := newSlow(r, idemhttp.Route{})
	first := s.begin(post("/slow", "k", "201"))
	s.inside(t)
	duplicates := s.beginMany(20, post("/slow", "k", "201"))
	others := make([]<-chan reply, 5) // these queue for the connection
	for i := range others {
		others[i] = s.begin(post("/slow", "other"+strconv.Itoa(i), "201"))
	}
	s.waiters("k", 20)
	s.release()
	s.want(<-first, 201, "")
	for _, d := range duplicates {
		if got := <-d; got.status != 201 || !got.replayed() {
			t.Errorf("a duplicate got %d %q", got.status, got.body)
		}
	}
	for _, o := range others {
		s.want(<-o, 201, "")
	}
	s.wantRows("select count(*) from orders", 6)
}

func TestC4_waitersHoldNoConnection(t *testing.T) {
	s := newSlow(newRig(t), idemhttp.Route{Wait: time.Minute})
	first := s.begin(post("/slow", "k", "201"))
	s.inside(t)
	duplicates := s.beginMany(200, post("/slow", "k", "201"))
	s.waiters("k", 200)
	for range 20 {
		if n := s.pool.Stat().AcquiredConns(); n != 1 {
			t.Fatalf("%d connections are held while 200 duplicates wait, want 1", n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	begun := s.pool.Stat().AcquireCount()
	s.release()
	one := <-first
	for _, d := range duplicates {
		if got := <-d; got.status != 201 || got.body != one.body || !got.replayed() {
			t.Fatalf("a duplicate got %d %q", got.status, got.body)
		}
	}
	if n := s.pool.Stat().AcquireCount() - begun; n != 0 {
		t.Errorf("the duplicates took %d connections after the first one's end, want none", n)
	}
	if n := s.runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

func TestC6_mismatchIsToldWhileTheFirstIsInFlight(t *testing.T) {
	s := newSlow(newRig(t), idemhttp.Route{Wait: time.Minute})
	first := s.begin(post("/slow", "k", "201"))
	s.inside(t)
	s.want(s.send(post("/slow", "k", "202")), 409, "key-mismatch") // a wait would be a minute
	s.want(s.send(sending{method: "PATCH", path: "/slow", key: "k", body: "201"}), 409, "key-mismatch")
	s.release()
	s.want(<-first, 201, "")
	if n := s.runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

func TestC9_waitersInTheProcessGetTheAnswerThatIsNotRemembered(t *testing.T) {
	for _, status := range []string{"422", "503", "400", "500"} {
		t.Run(status, func(t *testing.T) {
			s := newSlow(newRig(t), idemhttp.Route{})
			first := s.begin(post("/slow", "k", status))
			s.inside(t)
			duplicates := s.beginMany(10, post("/slow", "k", status))
			s.waiters("k", 10)
			s.release()
			one := <-first
			for _, d := range duplicates {
				got := <-d
				if got.status != one.status || got.body != "run 1" || got.replayed() || got.header.Get("Location") == "" || got.header.Get("X-Request-Id") != "" {
					t.Errorf("a duplicate got %d %q %v", got.status, got.body, got.header)
				}
			}
			if n := s.runs.Load(); n != 1 {
				t.Errorf("the handler ran %d times, want once", n)
			}
			s.wantFree()
			s.wantRows("select count(*) from orders", 0)
		})
	}
}

func TestC4_oneWaiterTooManyIsToldAtOnce(t *testing.T) {
	s := newSlow(newRig(t, func(c *idemhttp.Config) { c.MaxWaiters = 3 }), idemhttp.Route{Wait: time.Minute})
	first := s.begin(post("/slow", "k", "201"))
	s.inside(t)
	waiting := s.beginMany(3, post("/slow", "k", "201"))
	s.waiters("k", 3)
	s.want(s.send(post("/slow", "k", "201")), 425, "in-flight") // a wait would be a minute
	s.release()
	s.want(<-first, 201, "")
	for _, w := range waiting {
		s.want(<-w, 201, "")
	}
}

// Once it is known whose the key is, another request is told so whatever the
// crowd; the crowd is of those who wait.
func TestC6_mismatchIsToldBeyondTheLimitOfWaiters(t *testing.T) {
	s := newSlow(newRig(t, func(c *idemhttp.Config) { c.MaxWaiters = 1 }), idemhttp.Route{Wait: time.Minute})
	first := s.begin(post("/slow", "k", "201"))
	s.inside(t)
	waiting := s.begin(post("/slow", "k", "201"))
	s.waiters("k", 1)
	s.want(s.send(post("/slow", "k", "202")), 409, "key-mismatch")
	s.want(s.send(post("/slow", "k", "201")), 425, "in-flight")
	s.waiters("k", 1) // whoever was told has left
	s.release()
	s.want(<-first, 201, "")
	s.want(<-waiting, 201, "")
}
