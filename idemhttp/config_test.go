package idemhttp_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// routeFault is what Route panics with, or nothing.
func routeFault(g *idemhttp.Guard, rt idemhttp.Route) (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = v.(string)
		}
	}()
	g.Route(rt)
	return ""
}

// faults are single mistakes in a Config and what New says of them.
var faults = map[string]func(*idemhttp.Config){
	`idemhttp: Config.Profile is "rfc"; use idemhttp.Article or idemhttp.IETF`: func(c *idemhttp.Config) { c.Profile = "rfc" },
	`idemhttp: Config.Wait is 5m0.001s; it must be from 0s to 5m0s`:            func(c *idemhttp.Config) { c.Wait = 5*time.Minute + time.Millisecond },
	`idemhttp: Config.MaxBuffers is -1; it must be from 1 to 1099511627776`:    func(c *idemhttp.Config) { c.MaxBuffers = -1 },
	`idemhttp: Config.MaxWaiters is -1; it must be from 1 to 1000000`:          func(c *idemhttp.Config) { c.MaxWaiters = -1 },
	`idemhttp: Config.KeyHeaders holds "a b", which is not a header name`:      func(c *idemhttp.Config) { c.KeyHeaders = []string{"Key", "a b"} },
	`idemhttp: Config.KeyHeaders holds "", which is not a header name`:         func(c *idemhttp.Config) { c.KeyHeaders = []string{""} },
	`idemhttp: Config.KeyHeaders holds "X-KEY" twice`:                          func(c *idemhttp.Config) { c.KeyHeaders = []string{"X-Key", "X-KEY"} },
	`idemhttp: Config.ReplayHeaders holds "X:", which is not a header name`:    func(c *idemhttp.Config) { c.ReplayHeaders = []string{"X:"} },
	`idemhttp: Config.ReplayHeaders holds "set-cookie", which belongs to one session, connection or moment and is never replayed`: func(c *idemhttp.Config) {
		c.ReplayHeaders = []string{"X-Total", "set-cookie"}
	},
	`idemhttp: Config.ReplayHeaders holds "access-control-allow-origin", which belongs to one session, connection or moment and is never replayed`: func(c *idemhttp.Config) {
		c.ReplayHeaders = []string{"access-control-allow-origin"}
	},
}

func TestNew_namesAFault(t *testing.T) {
	r := newRig(t)
	for want, spoil := range faults {
		config := idemhttp.Config{Scope: bearer}
		spoil(&config)
		if guard, err := idemhttp.New(r.db, config); guard != nil || err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestNew_namesEveryFaultAtOnce(t *testing.T) {
	_, err := idemhttp.New(nil, idemhttp.Config{Profile: "rfc", Wait: time.Hour, MaxBuffers: -1, MaxWaiters: -1,
		KeyHeaders: []string{"", "a b"}, ReplayHeaders: []string{"Date", "Set-Cookie"}})
	wantEach(t, err.Error(), "New needs the handle that idem.Open returns", "Config.Scope is required", "Config.Profile", "Config.Wait",
		"Config.MaxBuffers", "Config.MaxWaiters", `Config.KeyHeaders holds ""`, `Config.KeyHeaders holds "a b"`, `"Date"`, `"Set-Cookie"`)
}

// wantEach wants every one of parts in got.
func wantEach(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("nothing is said of %s in\n%s", part, got)
		}
	}
}

// routeFaults are single mistakes in a Route and what Route says of them.
var routeFaults = map[string]func(*idemhttp.Route){
	`idemhttp: Route.Name (its length in bytes) is 0; it must be from 1 to 100`:   func(rt *idemhttp.Route) { rt.Name = "" },
	`idemhttp: Route.Name (its length in bytes) is 101; it must be from 1 to 100`: func(rt *idemhttp.Route) { rt.Name = strings.Repeat("n", 101) },
	`idemhttp: Route.TTL is 59s; it must be from 1m0s to 87600h0m0s`:              func(rt *idemhttp.Route) { rt.TTL = 59 * time.Second },
	`idemhttp: Route.Tombstone is -1s; it must be from 0s to 87600h0m0s`:          func(rt *idemhttp.Route) { rt.Tombstone = -time.Second },
	`idemhttp: Route.Limit is 1ms; it must be from 10ms to 10m0s`:                 func(rt *idemhttp.Route) { rt.Limit = time.Millisecond },
	`idemhttp: Route.Wait is 1h0m0s; it must be from 0s to 5m0s`:                  func(rt *idemhttp.Route) { rt.Wait = time.Hour },
	`idemhttp: Route.MaxBody is -1; it must be from 1 to 67108864`:                func(rt *idemhttp.Route) { rt.MaxBody = -1 },
	`idemhttp: Route.MaxHeld is 67108865; it must be from 1 to 67108864`:          func(rt *idemhttp.Route) { rt.MaxHeld = 64<<20 + 1 },
	`idemhttp: Route.MaxStored is 1048576; it must be from 1 to 1024`:             func(rt *idemhttp.Route) { rt.MaxHeld = 1024 },
	`idemhttp: Route.Methods holds "GET"; only POST, PATCH, PUT and DELETE can be guarded`: func(rt *idemhttp.Route) {
		rt.Methods = []string{"POST", "GET"}
	},
	`idemhttp: Route.Policies names status 199; it must be from 200 to 599`: func(rt *idemhttp.Route) {
		rt.Policies = map[int]idemhttp.Policy{199: idemhttp.CommitAndStore}
	},
	`idemhttp: Route.Policies[404] is 4; use CommitAndStore, RollbackAndStore or RollbackAndFree`: func(rt *idemhttp.Route) {
		rt.Policies = map[int]idemhttp.Policy{404: 4}
	},
	`idemhttp: Route.FingerprintHeaders holds "a b", which is not a header name`: func(rt *idemhttp.Route) { rt.FingerprintHeaders = []string{"a b"} },
	`idemhttp: Route.FingerprintHeaders holds "host", which net/http keeps in Request.Host; use Route.Fingerprint`: func(rt *idemhttp.Route) {
		rt.FingerprintHeaders = []string{"host"}
	},
	`idemhttp: Route.TxOptions may set IsoLevel only; the guard begins and commits`: func(rt *idemhttp.Route) {
		rt.TxOptions = pgx.TxOptions{AccessMode: pgx.ReadOnly}
	},
	`idemhttp: Route.TxOptions.IsoLevel is "snapshot"; use pgx.ReadCommitted, pgx.RepeatableRead or pgx.Serializable`: func(rt *idemhttp.Route) {
		rt.TxOptions.IsoLevel = "snapshot"
	},
	`idemhttp: Route.Replay is "twice"; use idemhttp.ReplayBytes or idemhttp.ReplayResource`:     func(rt *idemhttp.Route) { rt.Replay = "twice" },
	`idemhttp: Route.Fetch is required with ReplayResource: a repeat has no stored body to send`: func(rt *idemhttp.Route) { rt.Replay = idemhttp.ReplayResource },
	`idemhttp: Route.Fetch needs Route.Replay: idemhttp.ReplayResource`:                          func(rt *idemhttp.Route) { rt.Fetch = func(http.ResponseWriter, *http.Request, string) {} },
	`idemhttp: Route.CanonicalJSON and Route.Fingerprint exclude each other`: func(rt *idemhttp.Route) {
		rt.CanonicalJSON = true
		rt.Fingerprint = func(*http.Request, []byte) ([]byte, error) { return nil, nil }
	},
}

func TestRoute_namesAFault(t *testing.T) {
	r := newRig(t)
	for want, spoil := range routeFaults {
		route := idemhttp.Route{Name: want[len(want)-20:]}
		spoil(&route)
		if got := routeFault(r.guard, route); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestRoute_namesEveryFaultAtOnce(t *testing.T) {
	r := newRig(t)
	got := routeFault(r.guard, idemhttp.Route{TTL: time.Second, Tombstone: -1, Limit: time.Hour, Wait: time.Hour, MaxBody: -1, MaxStored: -1, MaxHeld: -1,
		Methods: []string{"GET", "HEAD"}, Policies: map[int]idemhttp.Policy{1: 9, 200: 9}, FingerprintHeaders: []string{"", "a:b"},
		TxOptions: pgx.TxOptions{IsoLevel: "x", AccessMode: "y"}, Replay: "x", CanonicalJSON: true,
		Fetch:       func(http.ResponseWriter, *http.Request, string) {},
		Fingerprint: func(*http.Request, []byte) ([]byte, error) { return nil, nil }})
	wantEach(t, got, "Route.Name", "Route.TTL", "Route.Tombstone", "Route.Limit", "Route.Wait", "Route.MaxBody", "Route.MaxStored", "Route.MaxHeld",
		`Route.Methods holds "GET"`, `Route.Methods holds "HEAD"`, "Route.Policies names status 1;", "Route.Policies[1]", "Route.Policies[200]",
		`Route.FingerprintHeaders holds ""`, `Route.FingerprintHeaders holds "a:b"`, "Route.TxOptions may set", "Route.TxOptions.IsoLevel",
		"Route.Replay is", "exclude each other")
}

func TestRoute_aNameIsTakenOnce(t *testing.T) {
	r := newRig(t)
	if got := routeFault(r.guard, idemhttp.Route{Name: "POST /orders"}); got != "" {
		t.Fatalf("the first use is refused: %s", got)
	}
	const want = `idemhttp: Route.Name "POST /orders" is taken; names are unique within a guard`
	if got := routeFault(r.guard, idemhttp.Route{Name: "POST /orders"}); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := routeFault(rigOn(t, r.pool).guard, idemhttp.Route{Name: "POST /orders"}); got != "" {
		t.Errorf("another guard's name is refused: %s", got)
	}
	if got := routeFault(r.guard, idemhttp.Route{Name: "bad", TTL: 1}); got == "" {
		t.Error("a TTL of a nanosecond is accepted")
	}
	if got := routeFault(r.guard, idemhttp.Route{Name: "bad", TTL: idem.Simple}); got != "" {
		t.Errorf("a refused route has taken its name: %s", got)
	}
}

func TestRoute_theLimitsThemselvesAreAllowed(t *testing.T) {
	r := newRig(t)
	for name, rt := range map[string]idemhttp.Route{
		"zero":     {},
		"lowest":   {TTL: time.Minute, Limit: 10 * time.Millisecond, Wait: -1, MaxBody: 1, MaxStored: 1, MaxHeld: 1},
		"highest":  {TTL: 87600 * time.Hour, Tombstone: 87600 * time.Hour, Limit: 10 * time.Minute, Wait: 5 * time.Minute, MaxBody: 64 << 20, MaxHeld: 64 << 20, MaxStored: 64 << 20},
		"methods":  {Methods: []string{"POST", "PATCH", "PUT", "DELETE"}},
		"resource": {Replay: idemhttp.ReplayResource, Fetch: func(http.ResponseWriter, *http.Request, string) {}},
	} {
		rt.Name = name
		if got := routeFault(r.guard, rt); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
