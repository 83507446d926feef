package idemhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

func TestS1_twoPrincipalsHaveTwoOrders(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{})
	alice, bob := r.send(post("/orders", "k", body).as("alice")), r.send(post("/orders", "k", body).as("bob"))
	for principal, first := range map[string]reply{"alice": alice, "bob": bob} {
		r.want(first, 201, "")
		if again := r.send(post("/orders", "k", body).as(principal)); again.body != first.body || !again.replayed() {
			t.Errorf("%s got %q again, want %q", principal, again.body, first.body)
		}
	}
	if alice.body == bob.body || alice.replayed() || bob.replayed() {
		t.Errorf("alice got %q, bob %q; want an order each", alice.body, bob.body)
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want twice", n)
	}
	r.wantRows("select count(*) from orders", 2)
}

func TestS2_anotherPathQueryOrMethodIsAMismatch(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	for _, path := range []string{"/orders", "/refunds", "/orders/"} {
		r.handle(path, idemhttp.Route{Methods: []string{"POST", "PUT", "PATCH", "DELETE"}}, createOrder(&runs))
	}
	r.serve()
	first := r.send(post("/orders", "k", body))
	r.want(first, 201, "")
	others := []sending{post("/refunds", "k", body), post("/orders/", "k", body), post("/orders/7", "k", body),
		post("/orders?dry=1", "k", body),
		{method: "PUT", path: "/orders", key: "k", body: body}, {method: "PATCH", path: "/orders", key: "k", body: body},
		{method: "DELETE", path: "/orders", key: "k", body: body}}
	for _, s := range others {
		got := r.send(s)
		r.want(got, 409, "key-mismatch")
		if got.replayed() || strings.Contains(got.body, "customer_id") || got.header.Get("Location") != "" {
			t.Errorf("%s %s got the first one's answer: %s", s.method, s.path, got.body)
		}
	}
	if again := r.send(post("/orders", "k", body)); again.body != first.body || !again.replayed() {
		t.Errorf("afterwards the first answer is not replayed: %d %s", again.status, again.body)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

func TestS3_anotherQueryIsAMismatch(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{})
	r.want(r.send(post("/orders?to=A", "k", body)), 201, "")
	for _, query := range []string{"?to=B", "?to=a", "?to=A&to=B", "?To=A", "?to=%41", ""} {
		r.want(r.send(post("/orders"+query, "k", body)), 409, "key-mismatch")
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

// tokens are access tokens that can be revoked: a scope function with state.
type tokens struct{ principals sync.Map }

func (ts *tokens) scope(r *http.Request) (string, error) {
	principal, ok := ts.principals.Load(r.Header.Get("Authorization"))
	if !ok {
		return "", errors.New("the token is not valid")
	}
	return principal.(string), nil
}

func TestS4_revokedTokenGetsNoAnswer(t *testing.T) {
	var issued tokens
	issued.principals.Store("token", "alice")
	r := newRig(t, func(c *idemhttp.Config) { c.Scope = issued.scope })
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	r.want(r.send(post("/orders", "k", body).as("token")), 201, "")
	issued.principals.Delete("token")
	got := r.unqueried(func() reply { return r.send(post("/orders", "k", body).as("token")) })
	r.want(got, 401, "unauthenticated")
	if !strings.Contains(got.body, `"safe_new_key":false`) {
		t.Errorf("the problem allows a new key: %s", got.body)
	}
	r.want(r.send(post("/orders", "", body).as("token")), 401, "unauthenticated") // the scope is asked before the key
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

func TestS4_replayCheckRefusesThisVeryAnswer(t *testing.T) {
	var verdict error
	r, runs := ordersRig(t, idemhttp.Route{ReplayCheck: func(req *http.Request, a idem.Answer) error {
		if a.Status != 201 || !strings.Contains(string(a.Body), `"amount":1500`) || req.Header.Get("Authorization") != "alice" {
			t.Errorf("it was asked about %d %q of %q", a.Status, a.Body, req.Header.Get("Authorization"))
		}
		return verdict
	}})
	alice := post("/orders", "k", body).as("alice")
	verdict = errors.New("alice left the company")
	first := r.send(alice) // is not asked: the handler decides
	r.want(first, 201, "")
	got := r.send(alice)
	r.want(got, 403, "replay-refused")
	if strings.Contains(got.body, "alice") || strings.Contains(got.body, "amount") || got.header.Get("Location") != "" {
		t.Errorf("the refusal leaks: %v %s", got.header, got.body)
	}
	verdict = fmt.Errorf("the directory is away: %w", idem.ErrUnavailable)
	r.want(r.send(alice), 503, "unavailable")
	verdict = nil
	if again := r.send(alice); again.body != first.body || !again.replayed() {
		t.Errorf("got %d %q, want the first answer", again.status, again.body)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

func TestS5_aGuardWithoutAScopeIsAnError(t *testing.T) {
	r := newRig(t)
	_, err := idemhttp.New(r.db, idemhttp.Config{})
	const want = "idemhttp: Config.Scope is required: without it one caller's key would give another caller's answer; " +
		"return the authenticated principal, or use idemhttp.Public() for a public endpoint"
	if err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	public := rigOn(t, r.pool, func(c *idemhttp.Config) { c.Scope = idemhttp.Public() })
	var runs atomic.Int64
	public.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	public.serve()
	first := public.send(post("/orders", "k", body).as("alice"))
	if again := public.send(post("/orders", "k", body).as("bob")); again.body != first.body || !again.replayed() {
		t.Errorf("a public endpoint has one scope; got %d %q", again.status, again.body)
	}
	r.wantRows("select count(*) from idem.idempotency_keys where scope = 'public'", 1)
}

func TestS5_anUnusableScopeIsNeverShared(t *testing.T) {
	var scope string
	var failure error
	r := newRig(t, func(c *idemhttp.Config) {
		c.Scope = func(*http.Request) (string, error) { return scope, failure }
	})
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{KeyOptional: true}, createOrder(&runs))
	r.serve()
	for _, c := range []struct {
		scope   string
		failure error
		status  int
		problem string
	}{
		{"", nil, 500, "not-applied"},
		{"a\x00b", nil, 500, "not-applied"},
		{"\xff", nil, 500, "not-applied"},
		{strings.Repeat("s", idem.MaxScope+1), nil, 500, "not-applied"},
		{"alice", errors.New("no"), 401, "unauthenticated"},
		{"alice", fmt.Errorf("directory: %w", idem.ErrUnavailable), 503, "unavailable"},
		{"alice", fmt.Errorf("directory: %w", context.DeadlineExceeded), 503, "unavailable"},
		{"alice", context.Canceled, 503, "unavailable"},
	} {
		scope, failure = c.scope, c.failure
		for _, key := range []string{"k", ""} {
			r.want(r.unqueried(func() reply { return r.send(post("/orders", key, body)) }), c.status, c.problem)
		}
	}
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
	scope, failure = strings.Repeat("s", idem.MaxScope), nil // the longest
	r.want(r.send(post("/orders", "k", body)), 201, "")
}

// slowFor runs create, and for one principal then waits for release.
func slowFor(principal string, create http.HandlerFunc, running chan<- struct{}, release <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		create(w, r)
		if r.Header.Get("Authorization") == principal {
			running <- struct{}{}
			<-release
		}
	}
}

func TestS6_aStrangerIsServedWhileTheOwnersRequestRuns(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	running, release := make(chan struct{}, 1), make(chan struct{})
	handler := slowFor("a", createOrder(&runs), running, release)
	r.handle("/orders", idemhttp.Route{}, handler)
	r.serve()
	foreign := rigOn(t, r.pool) // a second process
	foreign.handle("/orders", idemhttp.Route{}, handler)
	foreign.serve()
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	owner := make(chan reply, 1)
	go func() { owner <- r.send(post("/orders", "bc", body).as("a")) }()
	<-running

	other := `{"customer_id":666,"amount":1}`
	strangers := []sending{post("/orders", "bc", body).as("stranger"), post("/orders", "bc", other).as("mallory"),
		post("/orders", "c", body).as("ab"), post("/orders", "bc", body).as("a:2")}
	for i, s := range strangers { // every one before the owner has ended
		got := []*rig{r, foreign}[i%2].send(s)
		r.want(got, 201, "")
		if got.replayed() {
			t.Errorf("stranger %d got a replay: %s", i, got.body)
		}
	}
	r.want(foreign.send(post("/orders", "c", body).as("ab")), 201, "")
	select {
	case got := <-owner:
		t.Fatalf("the owner's request ended early: %d %s", got.status, got.body)
	default:
	}
	end()
	first := <-owner
	r.want(first, 201, "")
	if again := r.send(post("/orders", "bc", body).as("a")); again.body != first.body || !again.replayed() {
		t.Errorf("the owner's retry got %d %q, want %q", again.status, again.body, first.body)
	}
	r.wantRows("select count(*) from orders", len(strangers)+1)
}

func TestS7_aRefreshedTokenIsTheSamePrincipal(t *testing.T) {
	var issued tokens
	issued.principals.Store("token-1", "alice")
	issued.principals.Store("token-2", "alice")
	r := newRig(t, func(c *idemhttp.Config) { c.Scope = issued.scope })
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	first := r.send(post("/orders", "k", body).as("token-1"))
	r.want(first, 201, "")
	issued.principals.Delete("token-1")
	if again := r.send(post("/orders", "k", body).as("token-2")); again.body != first.body || !again.replayed() {
		t.Errorf("got %d %q, want %q as a replay", again.status, again.body, first.body)
	}
	r.wantRows("select count(*) from orders", 1)
}
