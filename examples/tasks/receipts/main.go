// Command receipts takes an order and writes its receipt in the background, once.
//
//	DATABASE_URL=postgres://localhost/shop go run ./receipts
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const schema = `
create table if not exists orders (id bigint generated always as identity primary key, amount bigint not null);
create table if not exists receipts (order_id bigint not null, amount bigint not null)`

// Receipt is the payload: what the handler has to know. It is stored as JSON.
type Receipt struct {
	Order int64 `json:"order"`
}

// receiptSend is a variable both of the program that enqueues and of the one that handles.
var receiptSend = queue.Define[Receipt]("receipt.send", queue.Options{})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, schema); err != nil {
		return err
	}
	if _, err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return err
	}
	if err := order(ctx, pool, 1500); err != nil {
		return err
	}
	worker := queue.NewWorker(db, queue.Config{})
	receiptSend.Handle(worker, send)
	return worker.Run(ctx) // until ctx ends
}

// order writes an order and enqueues its receipt: both exist, or neither.
func order(ctx context.Context, pool *pgxpool.Pool, amount int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, "insert into orders (amount) values ($1) returning id", amount).Scan(&id)
		if err != nil {
			return err
		}
		_, err = receiptSend.Enqueue(ctx, tx, fmt.Sprint("receipt:order:", id), Receipt{Order: id})
		return err
	})
}

// send writes a receipt with tx, which the worker commits together with the end of the
// task. Should the worker die before, none of it has happened, and another runs it again.
func send(ctx context.Context, tx pgx.Tx, r Receipt) error {
	var amount int64
	err := tx.QueryRow(ctx, "select amount from orders where id = $1", r.Order).Scan(&amount)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return queue.Cancel // there is no such order any more
	case err != nil:
		return err // run again, after a pause
	}
	_, err = tx.Exec(ctx, "insert into receipts (order_id, amount) values ($1, $2)", r.Order, amount)
	return err
}
