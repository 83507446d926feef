package ginidem

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// Guard returns the middleware of one route: the rest of the chain runs guarded,
// and does not run at all for a request that is answered without it. It panics
// where idemhttp.Guard.Route does. What it returns is safe for concurrent use.
//
// Errors that the chain hands to c.Error do not make an answer by themselves. If
// there are some and the chain has chosen no status of 300 or more, then nothing
// is applied, provided that it wrote no body or was aborted: the answer is 500, and
// where there was no body, middleware outside the guard may still write another one
// from c.Errors. To have such an answer remembered, put that middleware after the
// guard.
//
// The chain has gin's context for as long as it runs. If it exceeds its limit, the
// client is answered at that time, and the connection is closed when the chain
// returns. Engine.HandleContext must not be called within it: gin would write past
// the guard.
func Guard(g *idemhttp.Guard, rt idemhttp.Route) gin.HandlerFunc {
	guarded := g.Route(rt)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, _ := r.Context().Value(visitKey{}).(*visit)
		v.handle(w, r)
	}))
	return func(c *gin.Context) {
		v := &visit{c: c, before: snapshot(c), outer: c.Writer}
		request := c.Request
		defer func() { c.Request, c.Writer = request, v.outer }()
		defer v.loan.end(v.outer.Flush)
		guarded.ServeHTTP(&front{v.outer, &v.loan}, request.WithContext(context.WithValue(request.Context(), visitKey{}, v)))
		switch {
		case v.unguarded:
			return
		case !v.open:
			v.outer.WriteHeaderNow()
		}
		c.Abort() // what comes after has run, or must not
	}
}

// Context is gin's context of a request that a scope function, a ReplayCheck or
// another function of a guard or a route gets: middleware before the guard may
// have set values there, such as the principal. It is nil for other requests.
func Context(r *http.Request) *gin.Context {
	if v, ok := r.Context().Value(visitKey{}).(*visit); ok {
		return v.c
	}
	return nil
}

type visitKey struct{}

// visit is one request on its way through the guard.
type visit struct {
	c         *gin.Context
	before    *gin.Context // c, before the chain has run
	outer     gin.ResponseWriter
	loan      loan
	unguarded bool // the request's method is not guarded
	open      bool // middleware outside the guard may still answer
}

// handle runs the rest of the chain for the guard, in a goroutine of the guard's,
// or, if the request's method is not guarded, as if there were none.
func (v *visit) handle(w http.ResponseWriter, r *http.Request) {
	if f, ok := w.(*front); ok && f.loan == &v.loan {
		v.unguarded = true
		v.c.Next()
		return
	}
	if !v.loan.begin() {
		return // the request was over before its chain began
	}
	defer v.loan.finish()
	restore(v.c, v.before) // an earlier run has left it at its end
	response := &writer{ResponseWriter: w, status: http.StatusOK, size: -1}
	v.c.Request, v.c.Writer = r, response
	v.c.Next()
	failed := len(v.c.Errors) > len(v.before.Errors) && response.status < http.StatusMultipleChoices
	v.open = failed && !response.sent
	switch {
	case v.open:
		response.status = http.StatusInternalServerError
	case failed && (response.size == 0 || v.c.IsAborted()):
		_ = idem.Tx(r.Context()).Rollback(r.Context()) // one that has ended is found out by the guard
	}
	response.send()
}
