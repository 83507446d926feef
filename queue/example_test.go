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

// Receipt is the payload of a task: what its handler has to know.
type Receipt struct {
	Order int64 `json:"order"`
}

var ReceiptSend = queue.Define[Receipt]("receipt.send", queue.Options{})

// An order and the task of sending its receipt exist together or not at all. Enqueueing it
// again finds the first one.
func ExampleKind_Enqueue() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	if _, err := pool.Exec(ctx, "create table orders (id bigint primary key)"); err != nil {
		fmt.Println(err)
		return
	}
	order := func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values (17) on conflict do nothing"); err != nil {
			return err
		}
		task, err := ReceiptSend.Enqueue(ctx, tx, "receipt:order:17", Receipt{Order: 17})
		fmt.Println(task.Outcome, task.Status, err)
		return err
	}
	for range 2 {
		if err := pgx.BeginFunc(ctx, pool, order); err != nil {
			fmt.Println(err)
		}
	}

	// The same key for something else is a mistake, which is told and changes nothing.
	_, err := ReceiptSend.Enqueue(ctx, pool, "receipt:order:17", Receipt{Order: 18})
	var mismatch *queue.MismatchError
	fmt.Println(errors.As(err, &mismatch), errors.Is(err, queue.ErrMismatch))
	// Output:
	// new pending <nil>
	// duplicate pending <nil>
	// true true
}

// Many are enqueued in one round trip, each with a time and a priority of its own.
func ExampleKind_EnqueueMany() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	urgent, once := 5, 1
	told, err := ReceiptSend.EnqueueMany(ctx, pool,
		queue.Task[Receipt]{Key: "receipt:order:1", Payload: Receipt{1}, Priority: &urgent},
		queue.Task[Receipt]{Key: "receipt:order:2", Payload: Receipt{2}, Delay: time.Hour},
		queue.Task[Receipt]{Key: "receipt:order:3", Payload: Receipt{3}, RunAt: time.Date(2040, 1, 1, 8, 0, 0, 0, time.UTC)},
		queue.Task[Receipt]{Key: queue.Unkeyed, Payload: Receipt{4}, MaxAttempts: &once},
		queue.Task[Receipt]{Key: "receipt:order:1", Payload: Receipt{1}},
	)
	for _, t := range told {
		fmt.Println(t.Outcome)
	}
	fmt.Println(err)
	// Output:
	// new
	// new
	// new
	// new
	// duplicate
	// <nil>
}

// Report is a payload of which only a part says what the task is: another one for the same
// month is the same task, whoever has asked for it.
type Report struct {
	Month   string `json:"month"`
	AskedBy string `json:"asked_by"`
}

func ExampleKind_Means() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	report := queue.Define[Report]("report.make", queue.Options{}).
		Means(func(r Report) any { return r.Month })
	for _, r := range []Report{{"2027-01", "ana"}, {"2027-01", "bob"}, {"2027-02", "bob"}} {
		task, err := report.Enqueue(ctx, pool, "report:january", r)
		fmt.Println(task.Outcome, errors.Is(err, queue.ErrMismatch))
	}
	// Output:
	// new false
	// duplicate false
	// mismatch true
}

// What the handler writes, and the end of its task, commit together: the receipt is
// written once, however often a worker dies over it.
func ExampleKind_Handle() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	if _, err := pool.Exec(ctx, "create table receipts (order_id bigint)"); err != nil {
		fmt.Println(err)
		return
	}
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := ReceiptSend.Enqueue(ctx, pool, "receipt:order:17", Receipt{Order: 17}); err != nil {
		fmt.Println(err)
		return
	}

	worker := queue.NewWorker(db, queue.Config{})
	ReceiptSend.Handle(worker, func(ctx context.Context, tx pgx.Tx, r Receipt) error {
		if _, err := tx.Exec(ctx, "insert into receipts values ($1)", r.Order); err != nil {
			return err
		}
		idem.AfterCommit(ctx, func(context.Context) {
			fmt.Println("receipt of order", r.Order)
			stop() // a program goes on until it is told to end
		})
		return nil
	})
	fmt.Println(worker.Run(ctx))
	// Output:
	// receipt of order 17
	// <nil>
}

// A refund leaves the database, so it is a task on a lease, and the bank's part of it an
// effect: the bank refunds and hangs up, and is asked again with the same key.
func ExampleKind_HandleLeased() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	if _, err := pool.Exec(ctx, "create table refunds (payment_id bigint, bank_id text)"); err != nil {
		fmt.Println(err)
		return
	}
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	bank := exampleBank{refunds: make(map[string]string)}
	type payment struct{ ID int64 }
	refund := queue.Define[payment]("refund", queue.Options{Queue: "money"})
	if _, err := refund.Enqueue(ctx, pool, "refund:payment:17", payment{17}); err != nil {
		fmt.Println(err)
		return
	}

	worker := queue.NewWorker(db, queue.Config{})
	refund.HandleLeased(worker, func(ctx context.Context, p payment) error {
		effect := idem.Effect{Scope: "shop", Key: fmt.Sprint("refund:payment:", p.ID), Provider: idem.Keyed(23 * time.Hour)}
		id, err := idem.Call(ctx, effect, bank.refund)
		if err != nil {
			return err
		}
		if _, err = idem.Tx(ctx).Exec(ctx, "insert into refunds values ($1, $2)", p.ID, id); err != nil {
			return err
		}
		idem.AfterCommit(ctx, func(context.Context) { stop() })
		return nil
	})
	fmt.Println(worker.Run(ctx))
	fmt.Println(len(bank.refunds), "at the bank")
	// Output:
	// asked
	// asked again
	// <nil>
	// 1 at the bank
}

// exampleBank stands for another system that honours keys: it remembers what it has refunded.
type exampleBank struct{ refunds map[string]string }

func (b exampleBank) refund(_ context.Context, downstreamKey string) (id string, err error) {
	if id, refunded := b.refunds[downstreamKey]; refunded {
		fmt.Println("asked again")
		return id, nil
	}
	fmt.Println("asked")
	b.refunds[downstreamKey] = fmt.Sprint("re_", len(b.refunds)+1)
	return "", errors.New("the bank has refunded and hung up")
}
