// Command nethttp is the smallest program that guards a route: net/http, one
// table, one handler.
//
//	DATABASE_URL=postgres://localhost/shop go run .
//	curl -i -H 'Idempotency-Key: k1' -d '{"customer_id":123,"amount":1500}' http://localhost:8000/orders
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5/pgxpool"
)

const schema = `create table if not exists orders (
	id          bigint generated always as identity primary key,
	customer_id bigint not null,
	amount      bigint not null
)`

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newHandler(ctx, pool)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8000", handler))
}

// newHandler prepares the database and guards POST /orders.
func newHandler(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	if _, err := pool.Exec(ctx, schema); err != nil {
		return nil, err
	}
	if _, err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	// A shop with accounts returns the account here instead.
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", guard.Route(idemhttp.Route{Name: "POST /orders"})(http.HandlerFunc(createOrder)))
	return mux, nil
}

type order struct {
	ID         int64 `json:"id"`
	CustomerID int64 `json:"customer_id"`
	Amount     int64 `json:"amount"`
}

// createOrder writes and answers. What it writes commits with its answer, and is
// rolled back with a 422.
func createOrder(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, "the body is not an order", http.StatusBadRequest)
		return
	}
	err := idem.Tx(r.Context()).QueryRow(r.Context(),
		"insert into orders (customer_id, amount) values ($1, $2) returning id", o.CustomerID, o.Amount).Scan(&o.ID)
	if err != nil {
		http.Error(w, "the order could not be written", http.StatusInternalServerError)
		return
	}
	if o.Amount <= 0 {
		http.Error(w, "amount must be positive", http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", o.ID))
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o) // into the guard's memory, which does not fail
}
