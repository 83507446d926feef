package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

var (
	//go:embed sql/orders.sql
	ordersSchema string
	//go:embed sql/order_insert.sql
	insertOrder string
	//go:embed sql/slow.sql
	slow string
)

// newOrder is the body of POST /orders. SleepMS makes the handler slow.
type newOrder struct {
	CustomerID int64   `json:"customer_id"`
	Amount     float64 `json:"amount"`
	SleepMS    int64   `json:"sleep_ms,omitempty"`
}

type order struct {
	ID         int64   `json:"id"`
	CustomerID int64   `json:"customer_id"`
	Amount     float64 `json:"amount"`
	Status     string  `json:"status"`
}

// createOrder is the handler's work, the same for every subject: one row, within
// a transaction that is open or that begins with it.
func createOrder(ctx context.Context, tx pgx.Tx, body []byte) ([]byte, error) {
	var asked newOrder
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	if asked.SleepMS > 0 {
		wait := time.Duration(asked.SleepMS) * time.Millisecond
		if _, err := tx.Exec(ctx, slow, wait.Seconds()); err != nil {
			return nil, err
		}
	}
	var o order
	err := tx.QueryRow(ctx, insertOrder, asked.CustomerID, asked.Amount, "new").
		Scan(&o.ID, &o.CustomerID, &o.Amount, &o.Status)
	if err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// answer writes what a handler has come to.
func answer(w http.ResponseWriter, status int, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone is the clients' to count
}
