package echoidem_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
	"github.com/labstack/echo/v5"
)

// failures are the ways in which a handler fails, and what the client gets.
var failures = map[string]struct {
	do      func(c *echo.Context) error
	status  int
	problem string
	stored  bool
}{
	"an error":                 {do: func(*echo.Context) error { return errOwn }, status: 500},
	"422":                      {do: func(*echo.Context) error { return echo.NewHTTPError(422, "no") }, status: 422},
	"401":                      {do: func(*echo.Context) error { return echo.ErrUnauthorized }, status: 401},
	"409":                      {do: func(*echo.Context) error { return echo.NewHTTPError(409, "taken") }, status: 409, stored: true},
	"a wrapped 409":            {do: func(*echo.Context) error { return errors.Join(errOwn, echo.NewHTTPError(409, "taken")) }, status: 409, stored: true},
	"an HTTPError 200":         {do: func(*echo.Context) error { return echo.NewHTTPError(200, "what") }, status: 500, problem: "not-applied"},
	"bad JSON":                 {do: func(c *echo.Context) error { return c.JSON(201, func() {}) }, status: 500},
	"an answer, and an error":  {do: func(c *echo.Context) error { return errors.Join(c.String(201, "half"), errOwn) }, status: 500, problem: "not-applied"},
	"no content, and an error": {do: func(c *echo.Context) error { return errors.Join(c.NoContent(204), errOwn) }, status: 500, problem: "not-applied"},
	"a refusal, and an error":  {do: func(c *echo.Context) error { return errors.Join(c.String(409, "taken"), errOwn) }, status: 409, stored: true},
}

func TestP11_errorIsNeverTakenForAnEmptySuccess(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error {
				if run == 1 {
					return f.do(c)
				}
				return created(c, run)
			})
			first := r.send("k", "a")
			r.want(first, f.status, f.problem)
			if f.stored {
				r.wantCounts(0, 1)
				if got := r.send("k", "a"); got.status != f.status || !got.replayed || got.body != first.body {
					t.Errorf("the repeat got %+v, want %+v replayed", got, first)
				}
				return
			}
			r.wantCounts(0, 0)
			r.want(r.send("k", "a"), 201, "")
			r.wantCounts(1, 1)
		})
	}
}

func TestP11_errorHandlerOfTheProgramAnswers(t *testing.T) {
	for _, status := range []int{0, 200, 410, 422} {
		var outside, handled atomic.Int64
		r := newRig(t, idemhttp.Route{}, func(c *echo.Context, run int64) error { return errOwn },
			func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					err := next(c)
					if err != nil {
						outside.Add(1)
					}
					return err
				}
			})
		r.router.HTTPErrorHandler = func(c *echo.Context, err error) {
			handled.Add(1)
			if status != 0 {
				_ = c.String(status, err.Error())
			}
		}
		got := r.send("k", "a")
		switch {
		case status < http.StatusMultipleChoices:
			r.want(got, 500, "not-applied")
			r.wantCounts(0, 0)
		case status == http.StatusGone:
			r.want(got, 410, "")
			r.wantCounts(0, 1)
		default:
			r.want(got, 422, "")
			r.wantCounts(0, 0)
		}
		if handled.Load() != 1 || outside.Load() != 0 {
			t.Errorf("%d: the error was handled %d times and went outside %d times, want 1 and 0", status, handled.Load(), outside.Load())
		}
	}
}
