package shop_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
)

// payer is one key of a principal that pays order 1.
type payer struct{ who, key, card string }

// race sends so many requests of every payer at once, to several shops, each again
// until it is told how it ended.
func race(t *testing.T, shops []*running, payers []payer, each int) map[payer]answer {
	t.Helper()
	var mu sync.Mutex
	ended := map[payer]answer{}
	var all sync.WaitGroup
	for i := range each {
		for _, p := range payers {
			all.Go(func() {
				got := shops[i%len(shops)].insist(p)
				mu.Lock()
				defer mu.Unlock()
				if before, again := ended[p]; again && before.body != got.body {
					t.Errorf("%+v was told %s and %s", p, before.body, got.body)
				}
				ended[p] = got
			})
		}
	}
	all.Wait()
	return ended
}

// insist sends a payment until the answer is not one that asks for another try.
func (r *running) insist(p payer) answer {
	deadline := time.Now().Add(60 * time.Second)
	for {
		got, err := r.send("POST", "/payments", paying(1, p.card), "Idempotency-Key", p.key, "Authorization", "Bearer demo-"+p.who)
		if err == nil && got.status != 425 && got.status < 500 && !(got.status == 409 && got.code(r.t) == "outcome-unknown") {
			return got
		}
		if time.Now().After(deadline) {
			r.t.Errorf("%+v: still %d %s, %v", p, got.status, got.body, err)
			return got
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// E11: two keys for one order, fifty requests at once, on two shops, over a bank that
// loses replies; and a stranger who tries to pay it, too.
func TestE11_manyRequestsForOneOrderAreOneCharge(t *testing.T) {
	b := openBank(t)
	cfg := shop.Config{Bank: b.URL, Lease: time.Second}
	url := pgtest.NewURL(t)
	shops := []*running{openOn(t, pgtest.Pool(t, url), cfg), openOn(t, pgtest.Pool(t, url), cfg)}
	r := shops[0]
	r.order("o", "Authorization", "Bearer demo-ann")
	b.faults(bank.Faults{LoseReplies: 4, DelayBefore: 50})
	first, second := payer{"ann", "1", "tok_ok"}, payer{"ann", "2", "tok_lost_reply"}
	stranger := payer{"bob", "1", "tok_ok"}
	ended := race(t, shops, []payer{first, second, stranger}, 25)
	if got := ended[stranger]; got.status != 404 {
		t.Errorf("the stranger: got %d %s, want 404", got.status, got.body)
	}
	if ended[first].status+ended[second].status != 201+409 {
		t.Errorf("got %d and %d, want one 201 and one 409: %s %s", ended[first].status, ended[second].status, ended[first].body, ended[second].body)
	}
	r.wantLedger(1500)
	r.wantRows("shop.postings", 2)
	r.wantRows("shop.payments", 1)
	b.want(1, 0)
	r.wantSound()
}

// E11: after a decline, a new key with another card; all of them at once.
func TestE11_declinedAndGoodCardsAtOnceAreOneCharge(t *testing.T) {
	b := openBank(t)
	r := open(t, shop.Config{Bank: b.URL, Lease: time.Second})
	r.order("o", "Authorization", "Bearer demo-ann")
	var payers []payer
	for i := range 6 {
		card := "tok_declined"
		if i%2 == 1 {
			card = "tok_ok"
		}
		payers = append(payers, payer{"ann", fmt.Sprint(i), card})
	}
	captured := 0
	for p, got := range race(t, []*running{r}, payers, 3) {
		switch got.status {
		case 201:
			captured++
		case 402:
			if p.card == "tok_ok" {
				t.Errorf("%+v was told of another's decline: %s", p, got.body)
			}
		case 409:
		default:
			t.Errorf("%+v: got %d %s", p, got.status, got.body)
		}
	}
	if captured != 1 {
		t.Errorf("%d keys were told that they have paid, want 1", captured)
	}
	r.wantRows("shop.payments where status = 'captured'", 1)
	r.wantRows("shop.payments where status = 'pending'", 0)
	r.wantLedger(1500)
	s, err := b.Summary(t.Context())
	if err != nil || s.Charges != 1 {
		t.Errorf("the bank: %+v, %v; want one charge", s, err)
	}
}
