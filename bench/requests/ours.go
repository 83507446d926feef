package main

import (
	"context"
	"io"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// newOurs is the library as its README shows it, with every default.
func newOurs(lazy bool) func(context.Context, *pgxpool.Pool) (http.Handler, error) {
	return func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
		db, err := idem.Open(ctx, pool, idem.Config{})
		if err != nil {
			return nil, err
		}
		guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
		if err != nil {
			return nil, err
		}
		route := guard.Route(idemhttp.Route{Name: "POST /orders", LazyClaim: lazy})
		return route(http.HandlerFunc(guardedOrder)), nil
	}
}

func guardedOrder(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = createOrder(r.Context(), idem.Tx(r.Context()), body)
	}
	answer(w, http.StatusCreated, body, err)
}
