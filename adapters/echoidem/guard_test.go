package echoidem_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// created answers as a handler of echo's does.
func created(c *echo.Context, run int64) error {
	c.Response().Header().Set("Location", "/orders/"+c.Param("name"))
	return c.JSON(http.StatusCreated, map[string]any{"run": run, "route": c.Path(), "who": c.Get("principal")})
}

func TestQ1_Q2_P13_repeatsGetTheFirstAnswerAndRunNothing(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, created)
	first := r.send("k", "a")
	r.want(first, 201, "")
	if want := `{"route":"/orders/:name","run":1,"who":"guest"}` + "\n"; first.body != want {
		t.Errorf("the first got %s, want %s", first.body, want)
	}
	second := r.send("k", "a")
	if second.status != 201 || !second.replayed || second.body != first.body || first.replayed {
		t.Errorf("the repeat got %+v, want %+v replayed", second, first)
	}
	r.want(r.send("k", "b"), 409, "key-mismatch")
	if runs, inner := r.runs.Load(), r.inner.Load(); runs != 1 || inner != 1 {
		t.Errorf("the handler ran %d times and the middleware before it %d times, want once each", runs, inner)
	}
	r.wantCounts(1, 1)
}

func TestRollback_whatIsNotRememberedChangedNothing(t *testing.T) {
	var status atomic.Int64
	r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
		if s := status.Load(); s != 201 {
			return echo.NewHTTPError(int(s), "no")
		}
		return created(c, run)
	})
	for _, s := range []int64{422, 400, 500} {
		status.Store(s)
		r.want(r.send("k", "a"), int(s), "")
		r.wantCounts(0, 0)
	}
	status.Store(409)
	r.want(r.send("refused", "a"), 409, "")
	r.wantCounts(0, 1)
	status.Store(201)
	r.want(r.send("k", "a"), 201, "")
	if got := r.send("refused", "a"); got.status != 409 || !got.replayed {
		t.Errorf("the repeat of a refusal got %+v", got)
	}
	r.wantCounts(1, 2)
}

func TestPanic_reachesTheProgramsRecoverer(t *testing.T) {
	var seen atomic.Value
	tell := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			err := next(c)
			var panicked *middleware.PanicStackError
			if errors.As(err, &panicked) {
				seen.Store(panicked.Err.Error())
				return c.NoContent(http.StatusTeapot)
			}
			return err
		}
	}
	r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
		if err := c.JSON(http.StatusCreated, "half"); err != nil || run > 1 {
			return err
		}
		panic("boom")
	}, tell, middleware.Recover())
	r.want(r.send("k", "a"), 418, "")
	if seen.Load() != "boom" {
		t.Errorf("the recoverer saw %v, want boom", seen.Load())
	}
	r.wantCounts(0, 0)
	r.want(r.send("k", "a"), 201, "")
	r.wantCounts(1, 1)
}

func TestD6_transactionEndedByTheHandlerIsFoundOut(t *testing.T) {
	for end, want := range map[string]string{"Commit": "not-applied", "Rollback": "not-applied", "rollback": "not-applied",
		"commit": "outcome-unknown", "commit and chain": "outcome-unknown"} {
		t.Run(end, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
				ctx, tx := c.Request().Context(), idem.Tx(c.Request().Context())
				switch {
				case run > 1:
				case end == "Commit":
					_ = tx.Commit(ctx)
				case end == "Rollback":
					_ = tx.Rollback(ctx)
				default:
					_, _ = tx.Exec(ctx, end)
				}
				return created(c, run)
			})
			if want == "not-applied" {
				r.want(r.send("k", "a"), 500, want)
				r.wantCounts(0, 0)
				r.want(r.send("k", "a"), 201, "")
			} else {
				r.want(r.send("k", "a"), 409, want)
				r.want(r.send("k", "a"), 409, want)
			}
			r.wantCounts(1, 1)
		})
	}
}

func TestRerun_handlerIsRunAgain(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
		if run < 3 {
			_, err := idem.Tx(c.Request().Context()).Exec(c.Request().Context(), "do $$ begin raise exception 'lost' using errcode = '40001'; end $$")
			return echo.NewHTTPError(http.StatusConflict, "taken").Wrap(err)
		}
		return created(c, run)
	})
	r.want(r.send("k", "a"), 201, "")
	if runs, inner := r.runs.Load(), r.inner.Load(); runs != 3 || inner != 3 {
		t.Errorf("the handler ran %d times and the middleware %d times, want 3", runs, inner)
	}
	r.wantCounts(1, 1)
}

func TestMethods_othersRunAsIfThereWereNoGuard(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
		if run > 1 {
			return errOwn
		}
		return created(c, run)
	})
	r.want(r.sendAs(http.MethodGet, "k", ""), 201, "")
	r.want(r.sendAs(http.MethodGet, "k", ""), 500, "")
	r.wantCounts(0, 0)
}

func TestLimit_clientIsAnsweredBeforeTheHandlerReturns(t *testing.T) {
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	r := newRig(t, idemhttp.Route{Limit: 200 * time.Millisecond}, func(c *echo.Context, run int64) error {
		if run == 1 {
			<-held
		}
		c.Set("late", run)
		return created(c, run)
	})
	t.Cleanup(release) // before the server is closed, which waits for it
	first := r.send("k", "a")
	r.want(first, 503, "unavailable")
	if !first.closes {
		t.Fatal("the connection is kept, and the next request on it would wait for the handler")
	}
	r.wantCounts(0, 0)
	r.want(r.send("k", "a"), 201, "")
	release()
	r.wantCounts(1, 1)
}

func TestP10_flushAndHijackAreNotSupported(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
		w := c.Response().(interface{ Unwrap() http.ResponseWriter }).Unwrap() // echo's own panics
		if err := http.NewResponseController(w).Flush(); err == nil {
			t.Error("a flush was supported")
		}
		if _, _, err := http.NewResponseController(c.Response()).Hijack(); err == nil {
			t.Error("a hijack was supported")
		}
		return created(c, run)
	})
	r.want(r.send("k", "a"), 201, "")
	r.wantCounts(1, 1)
}
