// Command refunds asks a bank for refunds, each of them once.
//
//	DATABASE_URL=postgres://localhost/shop BANK_URL=https://bank.example go run ./refunds 17 18
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

const schema = `create table if not exists refunds (payment text primary key, bank_id text not null)`

// Refund is the payload.
type Refund struct {
	Payment string `json:"payment"`
}

// refundPay has a queue of its own, so that nothing else makes it wait.
var refundPay = queue.Define[Refund]("refund.pay", queue.Options{Queue: "money", Priority: 2, MaxAttempts: 20, Timeout: 2 * time.Minute})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL"), os.Getenv("BANK_URL"), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, bankURL string, payments []string) error {
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
	tasks := make([]queue.Task[Refund], len(payments))
	for i, p := range payments {
		tasks[i] = queue.Task[Refund]{Key: "refund:payment:" + p, Payload: Refund{p}}
	}
	enqueued, err := refundPay.EnqueueMany(ctx, pool, tasks...)
	if err != nil {
		return err
	}
	for i, e := range enqueued {
		fmt.Println("payment", payments[i], e.Outcome, e.Status) // on a second run: duplicate
	}
	worker := queue.NewWorker(db, queue.Config{})
	refundPay.HandleLeased(worker, bank{bankURL}.pay)
	return worker.Run(ctx)
}

type bank struct{ url string }

var (
	errClosed  = errors.New("the bank is closed")
	errRefused = errors.New("the bank refuses")
)

// pay may be run again at any time, in another process, after anything: Call remembers what
// has become of the bank's part, and everything behind it commits with the end of the task.
func (b bank) pay(ctx context.Context, r Refund) error {
	refund := idem.Effect{
		Scope:    "shop",
		Key:      "refund:payment:" + r.Payment,
		Provider: idem.Keyed(23 * time.Hour), // the bank honours keys for a day
	}
	id, err := idem.Call(ctx, refund, func(ctx context.Context, downstreamKey string) (string, error) {
		return b.refund(ctx, downstreamKey, r)
	})
	switch {
	case errors.Is(err, errClosed):
		return queue.Snooze(time.Hour) // costs no attempt
	case errors.Is(err, errRefused):
		return queue.Fail(err) // no attempt can help: a dead letter, for a person
	case err != nil:
		return err // also an outcome that is not known: the next attempt finds it out
	}
	_, err = idem.Tx(ctx).Exec(ctx, "insert into refunds (payment, bank_id) values ($1, $2)", r.Payment, id)
	return err
}

// refund is one request to the bank.
func (b bank) refund(ctx context.Context, downstreamKey string, r Refund) (id string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/refunds/"+r.Payment, nil)
	if err != nil {
		return "", idem.NotApplied(err)
	}
	req.Header.Set("Idempotency-Key", downstreamKey) // the same in every attempt
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err // it may have arrived: unknown, and asked again with the same key
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusCreated:
		return id, json.NewDecoder(res.Body).Decode(&id)
	case http.StatusServiceUnavailable:
		return "", idem.NotApplied(errClosed) // the bank says that it has done nothing
	case http.StatusUnprocessableEntity:
		return "", idem.NotApplied(errRefused)
	}
	return "", fmt.Errorf("the bank answered %s", res.Status)
}
