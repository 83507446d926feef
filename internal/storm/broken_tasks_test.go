package storm_test

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem/internal/shop"
)

// brokenWork are the ways to break how a shop works on its tasks.
func brokenWork() map[string]func(*shop.Shop, context.Context) error {
	return map[string]func(*shop.Shop, context.Context) error{
		"nobody works": func(_ *shop.Shop, ctx context.Context) error {
			<-ctx.Done()
			return nil
		},
		"a receipt is sent again, and a refund given up": beside(
			"insert into shop.receipts (order_id) select order_id from shop.receipts group by order_id having count(*) = 1 limit 1",
			"update idem.tasks set status = 'failed', last_error = 'x' where kind = 'refund.pay' and status = 'done'"),
	}
}

// beside works as a shop does, and runs statements now and then.
func beside(statements ...string) func(*shop.Shop, context.Context) error {
	return func(s *shop.Shop, ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.Work(ctx) }()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case err := <-done:
				return err
			case <-tick.C:
			}
			for _, sql := range statements {
				if _, err := s.DB().Pool().Exec(ctx, sql); err != nil && ctx.Err() == nil {
					return fmt.Errorf("beside: %w", err)
				}
			}
		}
	}
}
