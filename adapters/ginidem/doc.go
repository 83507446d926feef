// Package ginidem puts gin's handlers behind an idemhttp.Guard:
//
//	router.POST("/orders", ginidem.Guard(guard, idemhttp.Route{Name: "POST /orders"}), createOrder)
//
// What stands after the guard in the chain gets its transaction from the request's
// context: idem.Tx(c.Request.Context()). An error that it hands to c.Error without
// an answer beside it is never taken for an empty 200.
package ginidem
