package ginidem_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/idem-go/idem/idemhttp"
)

// errorHandler answers errors as gin's documentation shows.
func errorHandler(c *gin.Context) {
	c.Next()
	if len(c.Errors) > 0 && !c.Writer.Written() {
		c.JSON(http.StatusBadGateway, gin.H{"error": c.Errors.Last().Error()})
	}
}

// failures are the ways in which a chain says that it has failed, and what the
// client then gets without and with middleware that answers errors.
var failures = map[string]struct {
	do               func(c *gin.Context)
	alone, rendered  int
	problem          string
	remembersRefusal bool
}{
	"Error":                      {do: func(c *gin.Context) { _ = c.Error(errOwn) }, alone: 500, rendered: 502},
	"Error and a success":        {do: func(c *gin.Context) { c.Status(201); _ = c.Error(errOwn) }, alone: 500, rendered: 502},
	"Error and no content":       {do: func(c *gin.Context) { c.AbortWithStatus(204); _ = c.Error(errOwn) }, alone: 500, rendered: 502},
	"AbortWithError 200":         {do: func(c *gin.Context) { _ = c.AbortWithError(200, errOwn) }, alone: 500, rendered: 502},
	"AbortWithError 422":         {do: func(c *gin.Context) { _ = c.AbortWithError(422, errOwn) }, alone: 422, rendered: 422},
	"AbortWithError 500":         {do: func(c *gin.Context) { _ = c.AbortWithError(500, errOwn) }, alone: 500, rendered: 500},
	"AbortWithError 409":         {do: func(c *gin.Context) { _ = c.AbortWithError(409, errOwn) }, alone: 409, rendered: 409, remembersRefusal: true},
	"JSON that does not encode":  {do: func(c *gin.Context) { c.JSON(201, func() {}) }, alone: 500, rendered: 502},
	"empty body, then an Error":  {do: func(c *gin.Context) { c.String(201, ""); _ = c.Error(errOwn) }, alone: 500, rendered: 500, problem: "not-applied"},
	"half a body, then an abort": {do: func(c *gin.Context) { c.String(201, "half"); c.Abort(); _ = c.Error(errOwn) }, alone: 500, rendered: 500, problem: "not-applied"},
}

func TestP11_errorIsNeverTakenForAnEmptySuccess(t *testing.T) {
	for name, f := range failures {
		for _, rendered := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var outside []gin.HandlerFunc
				want := f.alone
				if rendered {
					outside, want = []gin.HandlerFunc{errorHandler}, f.rendered
				}
				r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
					if run == 1 {
						f.do(c)
						return
					}
					created(c, run)
				}, outside...)
				first := r.send("k", "a")
				r.want(first, want, f.problem)
				if f.remembersRefusal {
					r.wantCounts(0, 1)
					if got := r.send("k", "a"); got.status != want || !got.replayed {
						t.Errorf("the repeat got %+v", got)
					}
					return
				}
				if want == 502 && first.body != `{"error":"the handler's own"}` && name != "JSON that does not encode" {
					t.Errorf("the middleware's answer is %s", first.body)
				}
				r.wantCounts(0, 0)
				r.want(r.send("k", "a"), 201, "")
				r.wantCounts(1, 1)
			})
		}
	}
}

func TestErrors_besideAnAnswerChangeNothing(t *testing.T) {
	r := newRig(t, idemhttp.Route{}, func(c *gin.Context, run int64) {
		_ = c.Error(errOwn) // noted, for a log
		created(c, run)
	}, errorHandler)
	r.want(r.send("k", "a"), 201, "")
	if got := r.send("k", "a"); got.status != 201 || !got.replayed {
		t.Errorf("the repeat got %+v", got)
	}
	r.wantCounts(1, 1)
}
