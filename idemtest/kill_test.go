package idemtest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/idemtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// killing is what is killed in these tests.
func killing(handler func(context.Context, *pgxpool.Pool) (http.Handler, error)) idemtest.Kill {
	return idemtest.Kill{Migrate: tables, Handler: handler, Request: order, Check: one}
}

// The other way to claim is killed everywhere in example_test.go.
func TestKillEverywhere_lazyClaimSurvives(t *testing.T) {
	t.Parallel()
	idemtest.KillEverywhere(t, killing(guarded(idemhttp.Route{LazyClaim: true}, good)))
}

func TestKillEverywhere_catchesWritesOutsideOfTheTransaction(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		idemtest.KillEverywhere(t, killing(guarded(idemhttp.Route{}, outside)))
	}), "idemtest: point ", "the check: 2 orders, want 1")
}

func TestKillEverywhere_catchesARouteWithoutAGuard(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		idemtest.KillEverywhere(t, killing(unguarded(outside)))
	}), "where nothing is killed", "a repeat got another answer: header Location", "the check: 3 orders, want 1")
}

// everyTime is a handler that never does what it did before.
func everyTime(*pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := idem.Tx(r.Context()).Exec(r.Context(), fmt.Sprintf("insert into orders (amount) values (%d)", everyRun.Add(1)))
		if err != nil {
			http.Error(w, "database", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}
}

// everyRun counts over all handlers, as a clock would.
var everyRun atomic.Int64

func TestKillEverywhere_doesNotPassAPointThatWasNotThere(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		k := killing(guarded(idemhttp.Route{}, everyTime))
		k.MaxPoints = 200
		idemtest.KillEverywhere(t, k)
	}), "this message did not come again", "the answer was 201")
}

func TestKillEverywhere_saysWhatItCannotKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*idemtest.Kill)
		words  []string
	}{
		"nothing given": {func(k *idemtest.Kill) { *k = idemtest.Kill{} }, []string{"Kill.Handler is required", "Kill.Request is required", "Kill.Check is required"}},
		"another database": {func(k *idemtest.Kill) {
			k.Handler = unguarded(func(*pgxpool.Pool) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Idempotent-Replayed", "true") }
			})
			k.Check = func(context.Context, *pgxpool.Pool) error { return nil }
		}, []string{"sent nothing to the database"}},
		"too many points": {func(k *idemtest.Kill) { k.MaxPoints = 3 }, []string{"Kill.MaxPoints allows 3"}},
		"a check that never holds": {func(k *idemtest.Kill) {
			k.Check = func(context.Context, *pgxpool.Pool) error { return fmt.Errorf("no") }
		}, []string{"where nothing is killed", "the check: no"}},
		"a handler that cannot be made": {func(k *idemtest.Kill) {
			k.Migrate = nil
			k.Handler = func(context.Context, *pgxpool.Pool) (http.Handler, error) { return nil, fmt.Errorf("no") }
		}, []string{"the handler: no"}},
		"a migration that fails": {func(k *idemtest.Kill) {
			k.Migrate = func(context.Context, *pgxpool.Pool) error { return fmt.Errorf("no") }
		}, []string{"migrate: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := killing(guarded(idemhttp.Route{}, good))
			c.change(&k)
			wantFailure(t, record(t, func(t testing.TB) { idemtest.KillEverywhere(t, k) }), c.words...)
		})
	}
}

func TestKillProcess_aGoodHandlerSurvives(t *testing.T) {
	idemtest.KillProcessAt(t, killing(guarded(idemhttp.Route{}, good)), everyThird())
}

func TestKillProcess_catchesWritesOutsideOfTheTransaction(t *testing.T) {
	t.Run("in a subtest, with (signs)", func(t *testing.T) {
		wantFailure(t, record(t, func(t testing.TB) {
			idemtest.KillProcess(t, killing(guarded(idemhttp.Route{}, outside)))
		}), "idemtest: point ", "the check: 2 orders, want 1")
	})
}

// A child that goes another way never comes to KillProcess.
func TestKillProcess_saysThatItMustComeFirst(t *testing.T) {
	if os.Getenv("IDEMTEST_CHILD_TEST") != "" {
		return
	}
	wantFailure(t, record(t, func(t testing.TB) {
		idemtest.KillProcess(t, killing(guarded(idemhttp.Route{}, good)))
	}), "the child process did not serve", "KillProcess must be the first thing that its test does")
}

func TestKillEverywhere_failsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		k := killing(guarded(idemhttp.Route{}, good))
		made := atomic.Int64{}
		k.Handler = func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
			if made.Add(1) > 1 {
				<-ctx.Done() // every point takes all the time there is
			}
			return guarded(idemhttp.Route{}, good)(ctx, pool)
		}
		k.Limit = 3 * time.Second
		idemtest.KillEverywhere(t, k)
	}), "deadline exceeded")
}
