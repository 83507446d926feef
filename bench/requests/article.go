package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// articleSchema is the article's, letter by letter.
//
//go:embed sql/article.sql
var articleSchema string

// newArticle is the article's algorithm, statement by statement.
func newArticle(_ context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		body, err := io.ReadAll(r.Body)
		if err != nil || key == "" {
			http.Error(w, "no key or no body", http.StatusBadRequest)
			return
		}
		status, body, err := byArticle(r.Context(), pool, key, body)
		answer(w, status, body, err)
	}), nil
}

func byArticle(ctx context.Context, pool *pgxpool.Pool, key string, body []byte) (status int, answered []byte, err error) {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	tx, err := pool.Begin(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer tx.Rollback(ctx)
	inserted, err := tx.Exec(ctx, `insert into idempotency_keys(key, body_hash) values ($1, $2) on conflict do nothing`, key, hash)
	if err != nil {
		return 0, nil, err
	}
	if inserted.RowsAffected() == 0 {
		return articleReplay(ctx, tx, key, hash)
	}
	if answered, err = createOrder(ctx, tx, body); err != nil {
		return 0, nil, err
	}
	status = http.StatusCreated
	_, err = tx.Exec(ctx, `update idempotency_keys set response_status = $1, response_body = $2 where key = $3`, status, answered, key)
	if err != nil {
		return 0, nil, err
	}
	return status, answered, tx.Commit(ctx)
}

func articleReplay(ctx context.Context, tx pgx.Tx, key, hash string) (int, []byte, error) {
	var storedHash string
	var status *int
	var answered []byte
	err := tx.QueryRow(ctx, `select body_hash, response_status, response_body from idempotency_keys where key = $1 for update`, key).
		Scan(&storedHash, &status, &answered)
	switch {
	case err != nil:
		return 0, nil, err
	case storedHash != hash:
		return http.StatusConflict, []byte(`{"error":"key used with another body"}`), tx.Rollback(ctx)
	case status == nil:
		return http.StatusTooEarly, nil, tx.Commit(ctx)
	}
	return *status, answered, tx.Commit(ctx)
}
