package main

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestReceipts_eachOrderHasOne(t *testing.T) {
	url := pgtest.NewURL(t)
	pool := pgtest.Pool(t, url)
	for orders := range 2 { // the second run has an order more
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, url) }()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var n int
			err := pool.QueryRow(t.Context(), "select count(*) from idem.tasks where kind = 'receipt.send' and status = 'done'").Scan(&n)
			if err == nil && n == orders+1 {
				break
			}
			if time.Now().After(deadline) {
				stop()
				t.Fatalf("%d tasks are done (%v); run: %v", n, err, <-ended)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	var made, receipts, amounts int
	err := pool.QueryRow(t.Context(), "select (select count(*) from orders), count(distinct order_id), sum(amount) from receipts").Scan(&made, &receipts, &amounts)
	if err != nil || made != 2 || receipts != 2 || amounts != 3000 {
		t.Errorf("%d orders, and receipts of %d over %d (%v), want 2, 2 and 3000", made, receipts, amounts, err)
	}
}
