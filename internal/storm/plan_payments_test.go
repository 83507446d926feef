package storm

import (
	"math/rand/v2"
	"testing"
)

func TestPlan_paysEveryOrderInEveryWay(t *testing.T) {
	p := newPlan(rand.New(rand.NewPCG(1, 0)), 200, marks{firstCustomer: 1, key: "k"})
	cards, keys, of := map[string]int{}, map[string]bool{}, map[int][]intent{}
	for _, in := range p.payments {
		order := p.orders[in.pays]
		if in.principal != order.principal || in.amount != order.amount || keys[in.key+in.principal] {
			t.Errorf("got %+v for %+v, want a key of its own and the order's principal and amount", in, order)
		}
		keys[in.key+in.principal] = true
		cards[in.card]++
		of[in.pays] = append(of[in.pays], in)
	}
	for _, card := range []string{goodCard, slowCard, declinedCard, "tok_lost_reply", "tok_keyless", "tok_keyless_lost"} {
		if cards[card] < 10 {
			t.Errorf("%s pays %d times, want at least 10: %v", card, cards[card], cards)
		}
	}
	rivals, others, after := 0, 0, 0
	for i := range p.orders {
		switch all := of[i]; {
		case len(all) == 0:
			t.Errorf("order %d is not paid", i)
		case len(all) == 2 && all[0].rival && all[1].rival:
			rivals++
			if all[0].card != all[1].card {
				others++
			}
		case len(all) == 2 && all[0].card == declinedCard && all[1].card == goodCard && p.payments[all[1].after-1] == all[0]:
			after++
		case len(all) != 1 || all[0].card == declinedCard:
			t.Errorf("order %d: got %+v, want one payment, two at once, or one after a decline", i, all)
		}
	}
	if rivals != 50 || others != 30 || after != 10 {
		t.Errorf("got %d orders paid from two keys at once, %d of them with two cards, and %d after a decline; want 50, 30 and 10", rivals, others, after)
	}
}

// Before an order is there and a decline is known, there is nothing to be paid.
func TestRecords_aPaymentFollowsItsOrderAndTheDecline(t *testing.T) {
	p := plan{orders: []intent{{key: "k", amount: 2}}, payments: []intent{{card: declinedCard}, {card: goodCard, after: 1}}}
	r := newRecords(p)
	want := func(s send, want string) {
		t.Helper()
		if got, ok := r.payments.body(s); got != want || ok != (want != "") {
			t.Errorf("%+v: got %q, %v; want %q", s, got, ok, want)
		}
	}
	want(send{intent: 0}, "")
	r.guarded.note(send{}, answer{Status: 201, Body: `{"id":7,"customer_id":0,"amount":2}`, Definite: true})
	want(send{intent: 0}, `{"order_id":7,"card":"tok_declined"}`)
	want(send{intent: 0, altered: true}, `{"order_id":7,"card":"tok_ok"}`)
	want(send{intent: 1}, "")
	r.payments.note(send{intent: 0}, answer{Status: 402, Code: "card-declined", Definite: true})
	want(send{intent: 1}, `{"order_id":7,"card":"tok_ok"}`)
	if c := r.payments.c; c.Wrong != 0 || r.payments.lost != 1 {
		t.Errorf("got %+v, want one refusal", c)
	}
}
