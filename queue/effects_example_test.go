package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// refund is the payload of the example's task.
type refund struct {
	Payment int `json:"payment"`
	Amount  int `json:"amount"`
}

// A refund calls the bank, which pays back and hangs up before it answers. Since the bank
// honours keys, the call is repeated with the same one, and finds the refund that was
// made. What is booked commits together with the end of the task.
func ExampleKind_HandleLeased_effect() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	ended := make(chan idem.TaskResult, 1)
	db, err := idem.Open(ctx, pool, idem.Config{Observe: func(_ context.Context, e idem.Event) {
		if e.Kind == idem.EventTask {
			ended <- e.TaskResult
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := pool.Exec(ctx, "create table ledger (account text, amount int)"); err != nil {
		fmt.Println(err)
		return
	}
	refunds := make(map[string]string) // the bank's, by key
	bank := func(key string) (string, error) {
		if id, paid := refunds[key]; paid {
			return id, nil
		}
		refunds[key] = fmt.Sprintf("re_%d", len(refunds)+1)
		return "", errors.New("the bank has paid back and hung up")
	}

	kind := queue.Define[refund]("refund", queue.Options{})
	w := queue.NewWorker(db, queue.Config{})
	kind.HandleLeased(w, func(ctx context.Context, r refund) error {
		name := fmt.Sprintf("refund:payment:%d", r.Payment)
		pay := idem.Effect{Scope: "shop", Key: name, Input: r, Provider: idem.Keyed(23 * time.Hour)}
		id, err := idem.Call(ctx, pay, func(_ context.Context, key string) (string, error) { return bank(key) })
		if err != nil {
			return err // the worker knows what to make of it
		}
		book := idem.Effect{Scope: "shop", Key: "post:" + name}
		_, _, err = idem.Apply(ctx, idem.Tx(ctx), book, func(ctx context.Context, tx pgx.Tx) (string, error) {
			_, err := tx.Exec(ctx, "insert into ledger values ('cash', $1), ('sales', $2)", -r.Amount, r.Amount)
			return id, err
		})
		return err
	})
	if _, err := kind.Enqueue(ctx, pool, "refund:payment:17", refund{Payment: 17, Amount: 1500}); err != nil {
		fmt.Println(err)
		return
	}
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	fmt.Println(<-ended)
	stop()
	if err := <-stopped; err != nil {
		fmt.Println(err)
	}
	var sum, rows int
	if err := pool.QueryRow(context.Background(), "select sum(amount), count(*) from ledger").Scan(&sum, &rows); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(refunds), "refund,", rows, "rows that sum to", sum)
	// Output:
	// done
	// 1 refund, 2 rows that sum to 0
}
