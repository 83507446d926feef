package shop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
)

// violations are those that Check finds now, by invariant, row and detail.
func (r *running) violations() (found []string) {
	r.t.Helper()
	for v, err := range idem.Check(r.t.Context(), r.db) {
		if err != nil {
			r.t.Fatal(err)
		}
		found = append(found, v.Invariant+" "+v.Table+" "+v.Row+": "+v.Detail)
	}
	return found
}

// wantSound checks that every invariant holds.
func (r *running) wantSound() {
	r.t.Helper()
	if found := r.violations(); len(found) > 0 {
		r.t.Errorf("check found %s", strings.Join(found, "; "))
	}
}

// Each case has a payment of its own, %[1]d, which was captured or declined.
func TestChecks_findPlantedRows(t *testing.T) {
	cases := []struct{ name, card, plant, want string }{
		{"one leg is changed", "tok_ok", "update shop.postings set amount = 1 where effect = 'post:payment:%[1]d' and account = 'cash'",
			"ledger_sum shop.postings post:payment:%[1]d: its postings sum to -1499"},
		{"one leg is gone", "tok_ok", "delete from shop.postings where effect = 'post:payment:%[1]d' and account = 'sales'",
			"shop.payments %[1]d: it is captured with the amount 1500, but posted to 1 accounts"},
		{"never posted", "tok_ok", "delete from shop.postings where effect = 'post:payment:%[1]d'",
			"shop.payments %[1]d: it is captured with the amount 1500, but posted to 0 accounts"},
		{"posted with another amount", "tok_ok", "update shop.postings set amount = amount * 2 where effect = 'post:payment:%[1]d'",
			"shop.payments %[1]d: it is captured with the amount 1500, but posted to 2 accounts: 3000 to cash"},
		{"posted and pending", "tok_ok", "update shop.payments set status = 'pending' where id = %[1]d",
			"shop.payments %[1]d: it is pending with the amount 1500, but posted"},
		{"captured without a charge", "tok_ok", "delete from idem.applied_effects where effect_key = 'charge:payment:%[1]d'",
			"shop.payments %[1]d: it is captured, but its charge is missing and has come to nothing"},
		{"captured and declined by the bank", "tok_ok",
			`update idem.applied_effects set result = '{"status":"declined"}' where effect_key = 'charge:payment:%[1]d'`,
			"shop.payments %[1]d: it is captured, but its charge is applied and has come to declined"},
		{"declined and charged", "tok_declined",
			`update idem.applied_effects set result = '{"status":"captured"}' where effect_key = 'charge:payment:%[1]d'`,
			"shop.payments %[1]d: it is declined, but its charge is applied and has come to captured"},
		{"declined and unknown", "tok_declined",
			"update idem.applied_effects set status = 'unknown', result = null where effect_key = 'charge:payment:%[1]d'",
			"shop.payments %[1]d: it is declined, but its charge is unknown"},
		{"declined and posted", "tok_declined",
			"insert into shop.postings (effect, account, amount) values ('post:payment:%[1]d', 'cash', 1), ('post:payment:%[1]d', 'sales', -1)",
			"shop.payments %[1]d: it is declined with the amount 1500, but posted to 2 accounts"},
		{"charge of nothing", "tok_declined", "delete from shop.payments where id = %[1]d",
			"idem.applied_effects shop charge:payment:%[1]d: there is no such payment"},
		{"posting of nothing", "tok_ok", "delete from shop.payments where id = %[1]d", "shop.postings post:payment:%[1]d: there is no such payment"},
	}
	r := openOn(t, pgtest.Broken(t), shop.Config{Bank: openBank(t).URL})
	for i, c := range cases {
		r.order(fmt.Sprintf("order-%d", i))
		got := r.must("POST", "/payments", paying(i+1, c.card), "Idempotency-Key", fmt.Sprintf("payment-%d", i))
		if got.status != 201 && got.status != 402 {
			t.Fatalf("got %d %s, want a payment", got.status, got.body)
		}
	}
	r.wantSound()
	for i, c := range cases {
		if _, err := r.pool.Exec(t.Context(), fmt.Sprintf(c.plant, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	found := strings.Join(r.violations(), "\n")
	for i, c := range cases {
		if want := fmt.Sprintf(c.want, i+1); !strings.Contains(found, want) {
			t.Errorf("%s: check found\n%s\nwant %q", c.name, found, want)
		}
	}
}

func TestTallyPayments_countsThoseOfARangeOfCustomers(t *testing.T) {
	r, _ := openPaying(t, shop.Config{})
	r.wantPaid(r.pay("k", "tok_ok"))
	for _, c := range []struct{ first, last, want int64 }{{123, 123, 1}, {1, 122, 0}, {124, 200, 0}} {
		got, err := shop.TallyPayments(t.Context(), r.pool, c.first, c.last)
		if want := (shop.Tally{Rows: c.want, Intents: c.want}); err != nil || got != want {
			t.Errorf("%d to %d: got %+v, %v; want %+v", c.first, c.last, got, err, want)
		}
	}
}
