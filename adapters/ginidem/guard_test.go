package ginidem_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// created answers as a handler of gin's does.
func created(c *gin.Context, run int64) {
	c.Header("Location", "/orders/"+c.Param("name"))
	c.JSON(http.StatusCreated, gin.H{"run": run, "route": c.FullPath(), "who": c.GetString("principal")})
}

func TestQ1_Q2_P13_repeatsGetTheFirstAnswerAndRunNothing(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, created)
	first := r.send("k", "a")
	r.want(first, 201, "")
	if want := `{"route":"/orders/:name","run":1,"who":"guest"}`; first.body != want {
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
	r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
		if s := status.Load(); s != 201 {
			c.AbortWithStatusJSON(int(s), gin.H{"error": "no"})
			return
		}
		created(c, run)
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
	recovery := gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, v any) {
		seen.Store(v)
		c.AbortWithStatus(http.StatusTeapot)
	})
	r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
		c.JSON(http.StatusCreated, "half")
		if run == 1 {
			panic("boom")
		}
	}, recovery)
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
			r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
				ctx, tx := c.Request.Context(), idem.Tx(c.Request.Context())
				switch {
				case run > 1:
				case end == "Commit":
					_ = tx.Commit(ctx)
				case end == "Rollback":
					_ = tx.Rollback(ctx)
				default:
					_, _ = tx.Exec(ctx, end)
				}
				created(c, run)
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

func TestRerun_chainStartsAgainWithTheContextAsItWas(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
		if _, set := c.Get("mark"); set || len(c.Errors) > 0 || c.GetString("principal") != "guest" {
			t.Errorf("run %d finds what an earlier one left: %v, %v", run, c.Keys, c.Errors)
		}
		c.Set("mark", true)
		c.Set("principal", "changed")
		if run < 3 {
			_, err := idem.Tx(c.Request.Context()).Exec(c.Request.Context(), "do $$ begin raise exception 'lost' using errcode = '40001'; end $$")
			_ = c.AbortWithError(http.StatusConflict, err)
			return
		}
		created(c, run)
	})
	r.want(r.send("k", "a"), 201, "")
	if runs, inner := r.runs.Load(), r.inner.Load(); runs != 3 || inner != 3 {
		t.Errorf("the handler ran %d times and the middleware %d times, want 3", runs, inner)
	}
	r.wantCounts(1, 1)
}

func TestMethods_othersRunAsIfThereWereNoGuard(t *testing.T) {
	var after atomic.Int64
	r := newRig(t, idemhttp.Route{}, created, func(c *gin.Context) {
		c.Next()
		if !c.IsAborted() {
			after.Add(1)
		}
	})
	r.want(r.sendAs(http.MethodGet, "k", ""), 201, "")
	if after.Load() != 1 {
		t.Error("the context was aborted by a guard that guards nothing")
	}
	r.wantCounts(0, 0)
}

func TestLimit_clientIsAnsweredBeforeTheHandlerReturns(t *testing.T) {
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	r := newRig(t, idemhttp.Route{Limit: 200 * time.Millisecond}, func(c *gin.Context, run int64) {
		if run == 1 {
			<-held
		}
		c.Set("late", run)
		created(c, run)
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
	r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
		c.Writer.Flush()
		if err := http.NewResponseController(c.Writer).Flush(); err == nil {
			t.Error("a flush was supported")
		}
		if _, _, err := c.Writer.Hijack(); err == nil {
			t.Error("a hijack was supported")
		}
		_ = c.AbortWithError(http.StatusUnprocessableEntity, errOwn)
	})
	// The flush has fixed the status, as in gin, and the error then makes it a 500.
	r.want(r.send("k", "a"), 500, "")
	r.wantCounts(0, 0)
}
