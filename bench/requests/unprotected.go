package main

import (
	"context"
	"io"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
)

// newUnprotected is BEGIN, INSERT, COMMIT. A repeat is another order.
func newUnprotected(_ context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = orderInTx(r.Context(), pool, body)
		}
		answer(w, http.StatusCreated, body, err)
	}), nil
}

func orderInTx(ctx context.Context, pool *pgxpool.Pool, body []byte) ([]byte, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(ctx)
	made, err := createOrder(ctx, tx, body)
	if err != nil {
		return nil, err
	}
	return made, tx.Commit(ctx)
}
