package shop

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

const (
	// taskQueue keeps the shop's tasks apart from those of other programs on the same
	// database.
	taskQueue = "shop"
	// taskConcurrency is how many tasks a shop works on at once: each may hold a
	// connection, and its requests need some, too.
	taskConcurrency = 4
	// taskGrace is how long running tasks may go on at a shutdown: longer than the bank
	// is asked. What is not done then is given back.
	taskGrace = bankPatience + 2*time.Second

	// What fails is tried again soon, since people watch; and often, since a bank may be
	// away for some minutes.
	taskBackoff    = 200 * time.Millisecond
	taskMaxBackoff = 5 * time.Second
	taskAttempts   = 100
)

// receipt is what it takes to send an order's receipt.
type receipt struct {
	OrderID int64 `json:"order_id"`
}

// kinds are the shop's kinds of tasks.
type kinds struct {
	receipts *queue.Kind[receipt]
	refunds  *queue.Kind[refundTask]
}

func newKinds(lease time.Duration) kinds {
	o := queue.Options{Queue: taskQueue, Lease: lease, Backoff: taskBackoff, MaxBackoff: taskMaxBackoff, MaxAttempts: taskAttempts}
	return kinds{
		receipts: queue.Define[receipt]("receipt.send", o),
		refunds:  queue.Define[refundTask]("refund.pay", o),
	}
}

// Work works on the shop's tasks until ctx ends, and then ends those that run, within
// some seconds. Every process of the shop does, and each may be killed anywhere. Run does
// it by itself. Without a bank refunds are left to those that have one.
func (s *Shop) Work(ctx context.Context) error {
	w := queue.NewWorker(s.db, queue.Config{Concurrency: taskConcurrency, Grace: taskGrace})
	s.receipts.Handle(w, sendReceipt)
	if s.bank != nil {
		s.refunds.HandleLeased(w, s.payRefund)
	}
	if s.from != nil {
		select {
		case <-s.from:
		case <-ctx.Done():
			return nil
		}
	}
	if err := w.Run(ctx); err != nil {
		return fmt.Errorf("shop: work: %w", err)
	}
	return nil
}

// sendReceipt sends an order's receipt. It runs in the task's transaction, so it is
// written as if every task came once: what it inserts commits with the end of the task.
func sendReceipt(ctx context.Context, tx pgx.Tx, r receipt) error {
	_, err := tx.Exec(ctx, statement("receipt_insert"), r.OrderID)
	return err
}
