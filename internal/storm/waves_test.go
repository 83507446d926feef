package storm

import "testing"

// Before an intent has its answer, another request under its key is no mismatch:
// it would be the first, and right.
func TestWaves_aMismatchComesOnlyAfterTheAnswer(t *testing.T) {
	p := plan{orders: []intent{{key: "k", customer: 1, amount: 2}}}
	r := newRecords(p)
	d := &driver{phase: ending}
	j := &job{send: send{altered: true}, rec: r.guarded}
	if err := d.do(t.Context(), nil, j); err != nil { // without a client to send it
		t.Fatal(err)
	}
	if r.guarded.c.Undecided != 1 {
		t.Errorf("got %+v, want one that is undecided", r.guarded.c)
	}
}

func TestWaves_theLastAskEveryIntentAgainAndWhatIsOpenBehindAGuard(t *testing.T) {
	p := plan{orders: make([]intent, 2), bookings: make([]intent, 1)}
	r := newRecords(p)
	open := func(rec *record, altered, decided bool) *job {
		return &job{send: send{altered: altered}, rec: rec, decided: decided}
	}
	last := r.last(p, [][]*job{
		{open(r.guarded, false, true), open(r.guarded, false, false), open(r.bookings, false, false)},
		{open(r.unguarded, false, false), open(r.unguarded, true, false), open(r.guarded, true, false), open(r.guarded, true, true)},
	})
	if len(last) != 2 || len(last[0]) != 5 || len(last[1]) != 1 || !last[1][0].altered {
		t.Errorf("got %d and %d sends, want 2 open ones with 3 intents, then one mismatch", len(last[0]), len(last[1]))
	}
	for _, wave := range last {
		for _, j := range wave {
			if j.rec == r.unguarded || j.decided {
				t.Errorf("got %+v, want none without a guard and none decided", j)
			}
		}
	}
}

// A payment cannot be asked for before its order is there, nor twice.
func TestRecords_askForWhatIsOpenAndCanBe(t *testing.T) {
	p := plan{orders: []intent{{amount: 2}, {amount: 3}}, payments: []intent{{card: goodCard}, {card: goodCard, pays: 1}}}
	r := newRecords(p)
	r.guarded.note(send{intent: 1}, answer{Status: 201, Body: `{"id":7,"customer_id":0,"amount":3}`, Definite: true})
	if open := r.guarded.open(); len(open) != 1 || open[0].body != p.orders[0].order() {
		t.Errorf("got %+v, want the order that has no answer", open)
	}
	if open := r.payments.open(); len(open) != 1 || open[0].intent != 1 {
		t.Errorf("got %+v, want the payment of the order that is there", open)
	}
	r.payments.note(send{intent: 1}, answer{Status: 201, Body: `{"id":1,"order_id":7,"amount":3,"status":"captured"}`, Definite: true})
	if open := r.payments.open(); len(open) != 0 {
		t.Errorf("got %+v, want none", open)
	}
}
