package idemtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/idemtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// charges are the bank's.
func charges(ctx context.Context, pool *pgxpool.Pool) error {
	if err := tables(ctx, pool); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, "create table charges (key text unique)")
	return err
}

// bank charges each time, unless there is a key and that was used before, also when the
// client has gone; and it tells whether it has charged.
func bank(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			said := "charged"
			if charged(ctx, pool, 1, 1) != nil {
				said = "none"
			}
			fmt.Fprint(w, said)
			return
		}
		var key *string
		if k := r.Header.Get("Idempotency-Key"); k != "" {
			key = &k
		}
		if _, err := pool.Exec(ctx, "insert into charges (key) values ($1) on conflict do nothing", key); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "charged")
	}), nil
}

// ask asks the bank for a charge (POST) or whether there is one (GET).
func ask(ctx context.Context, method, bank, key string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, bank+"/charges", nil)
	if err != nil {
		return "", err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the bank says %s: %s", resp.Status, body)
	}
	return string(body), err
}

// paying is a handler that makes pay's charge and then an order.
func paying(pay func(ctx context.Context) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := pay(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		create(w, r, idem.Tx(r.Context()))
	}
}

// called pays in an idem.Call of e, by the downstream key if sendKey.
func called(e idem.Effect, sendKey bool) func(bank string) http.HandlerFunc {
	e.Scope, e.Key, e.Input = "shop", "charge:order:1", 1500
	return func(bank string) http.HandlerFunc {
		return paying(func(ctx context.Context) (string, error) {
			return idem.Call(ctx, e, func(ctx context.Context, key string) (string, error) {
				if !sendKey {
					key = ""
				}
				return ask(ctx, http.MethodPost, bank, key)
			})
		})
	}
}

var keyed = called(idem.Effect{Provider: idem.Keyed(time.Hour)}, true)

// uncalled pays as if there were nothing to it.
func uncalled(bank string) http.HandlerFunc {
	return paying(func(ctx context.Context) (string, error) { return ask(ctx, http.MethodPost, bank, "") })
}

// leased is handler on a route with a lease, and what is killed in these tests.
func leased(handler func(bank string) http.HandlerFunc) idemtest.Kill {
	k := killing(func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
		bank := idemtest.OutsideURL(ctx)
		h := func(*pgxpool.Pool) http.HandlerFunc { return handler(bank) }
		return guarded(idemhttp.Route{Lease: idemhttp.DefaultLease}, h)(ctx, pool)
	})
	k.Migrate, k.Outside = charges, bank
	k.Check = func(ctx context.Context, pool *pgxpool.Pool) error {
		return errors.Join(one(ctx, pool), charged(ctx, pool, 1, 1))
	}
	return k
}

// charged wants so many charges.
func charged(ctx context.Context, pool *pgxpool.Pool, least, most int) error {
	var n int
	err := pool.QueryRow(ctx, "select count(*) from charges").Scan(&n)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("%d charges, want %d to %d", n, least, most)
	}
	return err
}

// doubtful is leased where the bank honours no keys.
func doubtful(handler func(bank string) http.HandlerFunc) idemtest.Kill {
	k := leased(handler)
	k.Unknown = func(ctx context.Context, pool *pgxpool.Pool) error { return charged(ctx, pool, 0, 1) }
	return k
}

// atCalls are the points at the calls of the bank.
func atCalls(point string) bool { return strings.HasPrefix(point, "call ") }

// A keyed call is killed everywhere in example_test.go.
func TestKillEverywhere_catchesAChargeWithoutACall(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillEverywhere(t, leased(uncalled)) }),
		"idemtest: point ", "call POST /charges being ", "the check: 2 charges, want 1 to 1")
}

// Without the bank's points the database's find it.
func TestKillEverywhere_catchesAChargeWithoutACallBehindAnyAddress(t *testing.T) {
	t.Parallel()
	k := leased(uncalled)
	k.Handler = func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
		h, err := bank(ctx, pool)
		if err != nil {
			return nil, err
		}
		server := httptest.NewServer(h)
		context.AfterFunc(ctx, server.Close)
		return guarded(idemhttp.Route{Lease: idemhttp.DefaultLease}, func(*pgxpool.Pool) http.HandlerFunc { return uncalled(server.URL) })(ctx, pool)
	}
	k.Outside = nil
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillEverywhere(t, k) }), "the check: 2 charges, want 1 to 1")
}

func TestKillEverywhere_anUnkeyedCallMayEndUnknown(t *testing.T) {
	t.Parallel()
	idemtest.KillAt(t, doubtful(called(idem.Effect{}, false)), func(point string) bool {
		return atCalls(point) || strings.Contains(point, "with owner as") // what starts and records an effect
	})
}

func TestKillEverywhere_catchesAnOutcomeThatMayNotBeUnknown(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		k := doubtful(called(idem.Effect{}, false))
		k.Unknown = nil
		idemtest.KillAt(t, k, atCalls)
	}), "call POST /charges being ", "nobody knows whether the request was carried out", "outcome-unknown", "Kill.Unknown")
}

func TestKillEverywhere_checksWhatIsUnknown(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		// It says of a bank that honours no keys that it does.
		idemtest.KillAt(t, doubtful(called(idem.Effect{Provider: idem.Keyed(time.Hour)}, false)), atCalls)
	}), "the check: 2 charges")
	wantFailure(t, record(t, func(t testing.TB) {
		k := doubtful(called(idem.Effect{}, false))
		k.Unknown = func(context.Context, *pgxpool.Pool) error { return errors.New("no") }
		idemtest.KillAt(t, k, atCalls)
	}), "Kill.Unknown: no")
}

// reconciled pays without a key, and asks the bank what came of it.
func reconciled(bank string) http.HandlerFunc {
	return called(idem.Effect{Reconcile: func(ctx context.Context, _ string) (idem.Evidence, error) {
		switch found, err := ask(ctx, http.MethodGet, bank, ""); {
		case err != nil:
			return idem.Evidence{}, err
		case found == "none":
			return idem.Missing(), nil
		default:
			return idem.Found(found), nil
		}
	}}, false)(bank)
}

// Absence counts once the call cannot be under way any more, ten seconds later: none of
// it is waited for.
func TestKillEverywhere_whatIsUnknownMayBeSettledByEvidence(t *testing.T) {
	t.Parallel()
	idemtest.KillAt(t, leased(reconciled), atCalls)
}

// renewed is a bank that keeps its client waiting until the lease has been renewed.
func renewed(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	next, err := bank(ctx, pool)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for beaten := false; !beaten; {
			if err := pool.QueryRow(r.Context(), `select exists (select from idem.idempotency_keys
				where lease_until > created_at + interval '1100 ms')`).Scan(&beaten); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		next.ServeHTTP(w, r)
	}), err
}

// What the server says when it is ready is the same for a heartbeat as for the rest.
func TestKillEverywhere_heartbeatsAreNoPoints(t *testing.T) {
	t.Parallel()
	k := leased(keyed)
	k.Outside = renewed
	k.Handler = func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
		bank := idemtest.OutsideURL(ctx)
		return guarded(idemhttp.Route{Lease: time.Second}, func(*pgxpool.Pool) http.HandlerFunc { return keyed(bank) })(ctx, pool)
	}
	idemtest.KillAt(t, k, func(point string) bool {
		if strings.Contains(point, "unnest") {
			t.Errorf("a heartbeat is a point: %s", point)
		}
		return strings.HasPrefix(point, "server ReadyForQuery")
	})
}

var everyPoint = flag.Bool("every-point", false, "kill a handler's process at every point instead of every third")

func TestKillProcess_aKeyedCallSurvives(t *testing.T) {
	idemtest.KillProcessAt(t, leased(keyed), everyThird())
}

// everyThird picks the points of KillProcess, each of which starts processes.
func everyThird() func(string) bool {
	n := 0
	return func(string) bool {
		n++
		return *everyPoint || n%3 == 0
	}
}

func TestRepeat_aLeasedHandlerRunsOnce(t *testing.T) {
	t.Parallel()
	db := idemtest.New(t, charges)
	b, err := bank(t.Context(), db.Pool())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	h, err := guarded(idemhttp.Route{Lease: idemhttp.DefaultLease}, func(*pgxpool.Pool) http.HandlerFunc { return keyed(server.URL) })(t.Context(), db.Pool())
	if err != nil {
		t.Fatal(err)
	}
	if a := idemtest.Repeat(t, h, order, 20); a.Status != http.StatusCreated {
		t.Errorf("got %v, want 201", a)
	}
	if err := charged(t.Context(), db.Pool(), 1, 1); err != nil {
		t.Error(err)
	}
}
