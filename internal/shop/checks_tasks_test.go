package shop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
)

// Each case has an order, a payment and a refund of its own, %[1]d, which is done or has
// failed.
func TestChecks_findPlantedRowsOfTasks(t *testing.T) {
	const money, ok, kept = "shop.refunds", "tok_ok", "tok_no_refund"
	cases := []struct{ name, card, plant, want string }{
		{"two receipts", ok, "insert into shop.receipts (order_id) values (%[1]d)", "one_receipt_per_order shop.receipts %[1]d: the order has 2 receipts"},
		{"no receipt", ok, "delete from shop.receipts where order_id = %[1]d",
			"one_receipt_per_order shop.receipts %[1]d: the task that sends the receipt is done, and there is none"},
		{"two refunds", ok, "insert into shop.refunds (payment_id, amount, principal) values (%[1]d, 1500, 'guest')", money + " %[1]d: the payment has 2 refunds"},
		{"of more than was paid", ok, "update shop.refunds set amount = 1501 where payment_id = %[1]d",
			money + " %[1]d: it is of 1501, of a payment of 1500 that is captured"},
		{"of a declined payment", ok, "update shop.payments set status = 'declined' where id = %[1]d",
			money + " %[1]d: it is of 1500, of a payment of 1500 that is declined"},
		{"the bank was not asked", ok, "delete from idem.applied_effects where effect_key = 'refund:payment:%[1]d'",
			money + " %[1]d: it is done, but its effect is missing and has come to nothing"},
		{"declined and done", ok, `update idem.applied_effects set result = '{"status":"declined"}' where effect_key = 'refund:payment:%[1]d'`,
			money + " %[1]d: it is done, but its effect is applied and has come to declined"},
		{"refunded and failed", kept, `update idem.applied_effects set result = '{"status":"refunded"}' where effect_key = 'refund:payment:%[1]d'`,
			money + " %[1]d: it is failed, but its effect is applied and has come to refunded"},
		{"not posted", ok, "delete from shop.postings where effect = 'post:refund:payment:%[1]d'",
			money + " %[1]d: it is done with the amount 1500, but posted to 0 accounts"},
		{"posted the wrong way", ok, "update shop.postings set amount = -amount where effect = 'post:refund:payment:%[1]d'",
			money + " %[1]d: it is done with the amount 1500, but posted to 2 accounts: 1500 to cash, -1500 to sales"},
		{"failed and posted", kept,
			"insert into shop.postings (effect, account, amount) values ('post:refund:payment:%[1]d', 'cash', -1), ('post:refund:payment:%[1]d', 'sales', 1)",
			money + " %[1]d: it is failed with the amount 1500, but posted to 2 accounts"},
		{"nobody's", ok, "delete from shop.refunds where payment_id = %[1]d", "idem.applied_effects shop refund:payment:%[1]d: there is no such refund"},
		{"nobody's posting", ok, "delete from shop.refunds where payment_id = %[1]d", "shop.postings post:refund:payment:%[1]d: there is no such refund"},
	}
	r := openOn(t, pgtest.Broken(t), shop.Config{Bank: openBank(t).URL})
	for i, c := range cases {
		key := fmt.Sprint("k", i)
		r.order(key)
		paid := r.must("POST", "/payments", paying(i+1, c.card), "Idempotency-Key", key+"-pay")
		got := r.must("POST", "/refunds", fmt.Sprintf(`{"payment_id":%d}`, i+1), "Idempotency-Key", key+"-refund")
		if paid.status != 201 || got.status != 202 {
			t.Fatalf("got %d %s and %d %s, want a payment and its refund", paid.status, paid.body, got.status, got.body)
		}
	}
	r.waitForTasks()
	r.wantSound()
	if _, err := r.pool.Exec(t.Context(), "alter table shop.refunds drop constraint one_refund_per_payment"); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if _, err := r.pool.Exec(t.Context(), fmt.Sprintf(c.plant, i+1)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	found := strings.Join(r.violations(), "\n")
	for i, c := range cases {
		if want := fmt.Sprintf(c.want, i+1); !strings.Contains(found, want) {
			t.Errorf("%s: check found\n%s\nwant %q", c.name, found, want)
		}
	}
}
