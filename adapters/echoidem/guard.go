package echoidem

import (
	"context"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/labstack/echo/v5"
)

// Guard returns the middleware of one route. Give it to the route, or to a group
// that shares the policy, not to Echo.Use or Echo.Pre: those do not know the
// handler. It panics where idemhttp.Guard.Route does. What it returns is safe for
// concurrent use.
//
// An error of the handler is answered by Echo.HTTPErrorHandler, inside the guard:
// a 409 made of an error is remembered as any 409 is. It goes no further, so
// middleware outside the guard sees the answer and a nil error. A handler that
// returns an error after it has begun to answer success, for example because its
// JSON could not be encoded, has not applied anything: 500 not-applied. So has one
// whose HTTPErrorHandler answers success or nothing.
//
// The handler has echo's context for as long as it runs. If it exceeds its limit,
// the client is answered at that time, and the connection is closed when the
// handler returns.
func Guard(g *idemhttp.Guard, rt idemhttp.Route) echo.MiddlewareFunc {
	route := g.Route(rt)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		guarded := route(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, _ := r.Context().Value(visitKey{}).(*visit)
			v.handle(next, w, r)
		}))
		return func(c *echo.Context) error {
			v := &visit{c: c, request: c.Request(), outer: c.Response()}
			defer v.restore()
			defer v.loan.end(v.flush)
			guarded.ServeHTTP(&front{v.outer, &v.loan}, v.request.WithContext(context.WithValue(v.request.Context(), visitKey{}, v)))
			return v.err
		}
	}
}

// Context is echo's context of a request that a scope function, a ReplayCheck or
// another function of a guard or a route gets: middleware before the guard may
// have set values there, such as the principal. It is nil for other requests.
func Context(r *http.Request) *echo.Context {
	if v, ok := r.Context().Value(visitKey{}).(*visit); ok {
		return v.c
	}
	return nil
}

type visitKey struct{}

// visit is one request on its way through the guard.
type visit struct {
	c       *echo.Context
	request *http.Request
	outer   http.ResponseWriter // c's, outside the guard
	loan    loan
	err     error // of a handler that was not guarded
}

// handle runs the handler for the guard, in a goroutine of the guard's, or, if
// the request's method is not guarded, as if there were none.
func (v *visit) handle(next echo.HandlerFunc, w http.ResponseWriter, r *http.Request) {
	if f, ok := w.(*front); ok && f.loan == &v.loan {
		v.err = next(v.c)
		return
	}
	if !v.loan.begin() {
		return // the request was over before its handler began
	}
	defer v.loan.finish()
	c := v.c
	response := echo.NewResponse(w, c.Logger())
	c.SetRequest(r)
	c.SetResponse(response)
	err := next(c)
	if err == nil {
		return
	}
	success := response.Committed && response.Status < http.StatusBadRequest
	if !response.Committed {
		c.Echo().HTTPErrorHandler(c, err)
		success = !response.Committed || response.Status < http.StatusBadRequest
	}
	if success {
		_ = idem.Tx(r.Context()).Rollback(r.Context()) // one that has ended is found out by the guard
	}
}

func (v *visit) restore() {
	v.c.SetRequest(v.request)
	v.c.SetResponse(v.outer)
}

func (v *visit) flush() { _ = http.NewResponseController(v.outer).Flush() }
