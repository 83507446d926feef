package ops_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
)

// done is what the test itself has done after the storm, in good weather, so that it knows
// what has to be counted.
type done struct {
	with, without int // requests with a key, and without
	mismatches    int
	waited        int // requests that waited for another
	refunds       int // tasks refund.pay that are done
	repeats       int // attempts at them that failed
	skipped       int // effects
}

// work does some of everything.
func (d *demo) work() (did done) {
	d.t.Helper()
	with, without := d.with.Load(), d.without.Load()
	did.mismatches = d.orders()
	did.waited = d.crowd()
	did.skipped = d.payTwice(3)
	did.refunds, did.repeats = d.refundAll(3, 2)
	did.skipped += did.repeats // the bank's record tells the second attempt that it is done
	did.with, did.without = int(d.with.Load()-with), int(d.without.Load()-without)
	return did
}

func (d *demo) order(key string, amount, want int, headers map[string]string) (id int64) {
	return d.send(request{"/orders", key, fmt.Sprintf(`{"customer_id":7,"amount":%d}`, amount), headers}, want)
}

// orders sends each of ten orders three times, four also with another amount, and five
// without a key.
func (d *demo) orders() (mismatches int) {
	for i := range 10 {
		key := fmt.Sprintf("ops-order-%d", i)
		for range 3 {
			d.order(key, 1500, http.StatusCreated, nil)
		}
		if i < 4 {
			d.order(key, 9, http.StatusConflict, nil)
			mismatches++
		}
	}
	for range 5 {
		d.order("", 1500, http.StatusBadRequest, nil)
	}
	return mismatches
}

// crowd sends an order whose handler takes its time, and four repeats meanwhile.
func (d *demo) crowd() (waited int) {
	slow := map[string]string{"X-Demo-Delay": "3s"}
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { d.order("ops-crowd", 1500, http.StatusCreated, slow) })
	until(d.t, "the first one is in flight", func() bool {
		return strings.Contains(scrapeOf(d.t, "http://"+d.address).text, `idem_in_flight{route="POST /orders"} 1`)
	})
	for range 4 {
		sending.Go(func() { d.order("ops-crowd", 1500, http.StatusCreated, slow) })
		waited++
	}
	return waited
}

// paid makes an order and pays for it.
func (d *demo) paid(key, card string, want int, headers map[string]string) (id int64) {
	order := d.order(key+"-order", 1500, http.StatusCreated, nil)
	return d.pay(key, card, order, want, headers)
}

func (d *demo) pay(key, card string, order int64, want int, headers map[string]string) (id int64) {
	return d.send(request{"/payments", key, fmt.Sprintf(`{"order_id":%d,"card":%q}`, order, card), headers}, want)
}

// payTwice pays for orders with a handler that fails behind the charge, and again: the retry
// finds the payment's row and its charge applied.
func (d *demo) payTwice(times int) (skipped int) {
	for i := range times {
		key := fmt.Sprintf("ops-pay-%d", i)
		order := d.order(key+"-order", 1500, http.StatusCreated, nil)
		d.pay(key, "tok_ok", order, http.StatusInternalServerError, map[string]string{"X-Demo-Fail": "500"})
		d.pay(key, "tok_ok", order, http.StatusCreated, nil)
		skipped += 2
	}
	return skipped
}

// refundAll has payments refunded: some at once, and some at the second attempt, since the
// bank's reply to the first is lost and no call is repeated that the bank takes for new.
func (d *demo) refundAll(smooth, lost int) (refunds, repeats int) {
	refund := func(card string, i int) {
		key := fmt.Sprintf("ops-refund-%s-%d", card, i)
		payment := d.paid(key+"-payment", card, http.StatusCreated, nil)
		if card == "tok_keyless" {
			d.bankLosesReply()
		}
		d.send(request{"/refunds", key, fmt.Sprintf(`{"payment_id":%d}`, payment), nil}, http.StatusAccepted)
		d.idle()
	}
	for i := range smooth {
		refund("tok_ok", i)
	}
	for i := range lost {
		refund("tok_keyless", i)
	}
	return smooth + lost, lost
}

// bankLosesReply makes the bank hang up on the next one who asks it for something.
func (d *demo) bankLosesReply() {
	res, err := http.Post(d.said.Bank+"/faults", "application/json", strings.NewReader(`{"lose_replies":1}`))
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
		d.t.Fatalf("the bank's faults: %s", res.Status)
	}
}

// idle waits until every task has ended.
func (d *demo) idle() {
	pool := pgtest.Pool(d.t, d.database)
	until(d.t, "all tasks have ended", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var open int
		if err := pool.QueryRow(ctx, "select count(*) from idem.tasks where finished_at is null").Scan(&open); err != nil {
			d.t.Fatal(err)
		}
		return open == 0
	})
}
