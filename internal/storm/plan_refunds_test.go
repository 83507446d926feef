package storm

import (
	"math/rand/v2"
	"testing"
)

func TestPlan_refundsSomePaymentsInEveryWay(t *testing.T) {
	p := newPlan(rand.New(rand.NewPCG(1, 0)), 200, marks{firstCustomer: 1, key: "k"})
	cards, keys, of := map[string]bool{}, map[string]bool{}, map[int]int{}
	for _, in := range p.refunds {
		payment := p.payments[in.refunds]
		if in.principal != payment.principal || in.amount != payment.amount || keys[in.key+in.principal] {
			t.Errorf("got %+v for %+v, want a key of its own and the payment's principal and amount", in, payment)
		}
		if payment.rival || payment.card == declinedCard {
			t.Errorf("got a refund of %+v, which need not come to a payment", payment)
		}
		keys[in.key+in.principal] = true
		cards[payment.card] = true
		of[in.refunds]++
	}
	rivals := 0
	for _, n := range of {
		rivals += n - 1
	}
	if len(of) != 46 || rivals != 15 {
		t.Errorf("got %d refunds, %d of them from two keys; want 46 and 15", len(of), rivals)
	}
	for _, card := range []string{goodCard, slowCard, "tok_lost_reply", "tok_keyless", "tok_keyless_lost"} {
		if !cards[card] {
			t.Errorf("no payment with %s is refunded", card)
		}
	}
	altered := 0
	for _, s := range p.refundWaves[1] {
		if s.altered {
			altered++
		}
	}
	if altered == 0 {
		t.Error("no refund is altered")
	}
}

// Before a payment is there, there is nothing to be given back.
func TestRecords_aRefundFollowsItsPayment(t *testing.T) {
	p := plan{orders: []intent{{amount: 2}}, payments: []intent{{card: goodCard, amount: 2}},
		refunds: []intent{{amount: 2, rival: true}, {amount: 2, rival: true}}}
	r := newRecords(p)
	if _, ok := r.refunds.body(send{}); ok {
		t.Error("there is a refund before its payment")
	}
	r.guarded.note(send{}, answer{Status: 201, Body: `{"id":7,"customer_id":0,"amount":2}`, Definite: true})
	r.payments.note(send{}, answer{Status: 201, Body: `{"id":9,"order_id":7,"amount":2,"status":"captured"}`, Definite: true})
	for s, want := range map[send]string{{}: `{"payment_id":9}`, {altered: true}: `{"payment_id":10}`} {
		if got, ok := r.refunds.body(s); got != want || !ok {
			t.Errorf("%+v: got %q, %v; want %q", s, got, ok, want)
		}
	}
	r.refunds.note(send{}, answer{Status: 202, Body: `{"id":4,"payment_id":9,"amount":2,"status":"pending"}`, Location: "/refunds/4", Definite: true})
	r.refunds.note(send{intent: 1}, answer{Status: 409, Code: "already-refunded", Definite: true})
	if got := r.refunds.asked(); got.Wrong != 0 || got.Promised != 1 || got.Refused != 1 || got.Payments != 1 {
		t.Errorf("got %+v, want one promise and one refusal for one payment", got)
	}
}
