package shop

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Tally is what the tables say of a range of customers or slots, counted apart
// from anything that a client was told.
type Tally struct {
	Rows    int64 `json:"rows"`    // rows in all
	Intents int64 `json:"intents"` // principals and customers, slots, or orders, that have at least one
	Doubled int64 `json:"doubled"` // those of them that have more than one
}

// TallyOrders counts the orders of the customers from first to last, both
// included, that were made behind the guard.
func TallyOrders(ctx context.Context, pool *pgxpool.Pool, first, last int64) (Tally, error) {
	return tally(ctx, pool, "tally_orders", first, last+1)
}

// TallyUnguardedOrders is TallyOrders for those made without the guard.
func TallyUnguardedOrders(ctx context.Context, pool *pgxpool.Pool, first, last int64) (Tally, error) {
	return tally(ctx, pool, "tally_unguarded_orders", first, last+1)
}

// TallyPayments counts the captured payments of the orders of the customers from first
// to last, both included. An intent is an order.
func TallyPayments(ctx context.Context, pool *pgxpool.Pool, first, last int64) (Tally, error) {
	return tally(ctx, pool, "tally_payments", first, last+1)
}

// TallyReceipts counts the receipts of the orders of the customers from first to last,
// both included. An intent is an order.
func TallyReceipts(ctx context.Context, pool *pgxpool.Pool, first, last int64) (Tally, error) {
	return tally(ctx, pool, "tally_receipts", first, last+1)
}

// TallyRefunds counts the refunds that are done of the payments of these customers'
// orders. An intent is a payment.
func TallyRefunds(ctx context.Context, pool *pgxpool.Pool, first, last int64) (Tally, error) {
	return tally(ctx, pool, "tally_refunds", first, last+1)
}

// Tasks is what has come of tasks.
type Tasks struct {
	Done    int64 `json:"done"`
	Open    int64 `json:"open"`     // pending or running
	GivenUp int64 `json:"given_up"` // failed or cancelled
	Again   int64 `json:"again"`    // of all, taken more than once: a worker was killed, or an attempt has failed
}

// TallyTasks counts the tasks for the orders of the customers from first to last, both
// included: their receipts, and the refunds of their payments.
func TallyTasks(ctx context.Context, pool *pgxpool.Pool, first, last int64) (t Tasks, err error) {
	if err = pool.QueryRow(ctx, statement("tally_tasks"), first, last+1).Scan(&t.Done, &t.Open, &t.GivenUp, &t.Again); err != nil {
		return t, fmt.Errorf("shop: tally_tasks: %w", err)
	}
	return t, nil
}

// TallyBookings counts the bookings of the slots from first to last, both
// included.
func TallyBookings(ctx context.Context, pool *pgxpool.Pool, first, last time.Time) (Tally, error) {
	return tally(ctx, pool, "tally_bookings", first, last.Add(time.Minute))
}

func tally(ctx context.Context, pool *pgxpool.Pool, name string, from, to any) (t Tally, err error) {
	if err = pool.QueryRow(ctx, statement(name), from, to).Scan(&t.Rows, &t.Intents, &t.Doubled); err != nil {
		return t, fmt.Errorf("shop: %s: %w", name, err)
	}
	return t, nil
}
