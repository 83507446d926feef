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
		return guardOrders(ctx, pool, idem.Config{}, idemhttp.Route{LazyClaim: lazy})
	}
}

// newWatched is the same, watched in some way.
func newWatched(watch func() (idem.Config, error)) func(context.Context, *pgxpool.Pool) (http.Handler, error) {
	return func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
		config, err := watch()
		if err != nil {
			return nil, err
		}
		return guardOrders(ctx, pool, config, idemhttp.Route{})
	}
}

func guardOrders(ctx context.Context, pool *pgxpool.Pool, config idem.Config, route idemhttp.Route) (http.Handler, error) {
	db, err := idem.Open(ctx, pool, config)
	if err != nil {
		return nil, err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	route.Name = "POST /orders"
	return guard.Route(route)(http.HandlerFunc(guardedOrder)), nil
}

func guardedOrder(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = createOrder(r.Context(), idem.Tx(r.Context()), body)
	}
	answer(w, http.StatusCreated, body, err)
}
