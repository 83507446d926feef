package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	//go:embed sql/usual_lease.sql
	usualSchema string
	//go:embed sql/usual_claim.sql
	usualClaim string
	//go:embed sql/usual_read.sql
	usualRead string
	//go:embed sql/usual_answer.sql
	usualAnswer string
	//go:embed sql/keys_usual.sql
	keysUsual string
)

// newLeased is the library with a route on a lease. The handler calls nobody, so
// that what is measured is the way.
func newLeased(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	route := guard.Route(idemhttp.Route{Name: "POST /orders", Lease: idemhttp.DefaultLease})
	return route(http.HandlerFunc(guardedOrder)), nil
}

// newUsualLease is a lease as it is usually written: a claim that is committed first,
// and an update with the answer in the transaction of the order. It has no fence and
// is not renewed.
func newUsualLease(_ context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		body, err := io.ReadAll(r.Body)
		if err != nil || key == "" {
			http.Error(w, "no key or no body", http.StatusBadRequest)
			return
		}
		status, body, err := byUsualLease(r.Context(), pool, key, body)
		answer(w, status, body, err)
	}), nil
}

func byUsualLease(ctx context.Context, pool *pgxpool.Pool, key string, body []byte) (status int, answered []byte, err error) {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	claimed, err := pool.Exec(ctx, usualClaim, key, hash)
	if err != nil {
		return 0, nil, err
	}
	if claimed.RowsAffected() == 0 {
		return usualReplay(ctx, pool, key, hash)
	}
	status = http.StatusCreated
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if answered, err = createOrder(ctx, tx, body); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, usualAnswer, key, status, answered)
		return err
	})
	return status, answered, err
}

func usualReplay(ctx context.Context, pool *pgxpool.Pool, key, hash string) (int, []byte, error) {
	var storedHash string
	var status *int
	var answered []byte
	err := pool.QueryRow(ctx, usualRead, key).Scan(&storedHash, &status, &answered)
	switch {
	case err != nil:
		return 0, nil, err
	case storedHash != hash:
		return http.StatusConflict, []byte(`{"error":"key used with another body"}`), nil
	case status == nil:
		return http.StatusTooEarly, nil, nil
	}
	return *status, answered, nil
}
