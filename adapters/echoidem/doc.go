// Package echoidem puts echo's handlers behind an idemhttp.Guard:
//
//	e.POST("/orders", createOrder, echoidem.Guard(guard, idemhttp.Route{Name: "POST /orders"}))
//
// The handler, and the middleware that stands after the guard, gets its
// transaction from the request's context: idem.Tx(c.Request().Context()). An error
// that it returns is made an answer by echo's own HTTPErrorHandler before the
// guard decides, so it is never taken for an empty 200.
package echoidem
