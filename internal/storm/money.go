package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/idem-go/idem/internal/shop"
)

// pay is the job of a payment. A client that is told that its outcome is unknown asks
// again, which does not help before it is settled: so it does not for long.
func (r records) pay(s send) *job {
	j := &job{send: s, rec: r.payments}
	if strings.HasPrefix(r.payments.intents[s.intent].card, "tok_keyless") {
		j.patience = doubtPatience
	}
	return j
}

// payment makes a payment's body, once its order is there and the payment before it
// has its answer. An altered one has another card.
func (r records) payment(s send) (body string, ok bool) {
	in := r.payments.intents[s.intent]
	id, made := r.guarded.id(in.pays)
	if !made || in.after > 0 && !r.payments.answered(in.after-1) {
		return "", false
	}
	if s.altered {
		in.card = otherCard(in.card)
	}
	return in.payment(id), true
}

// otherCard is a good card that is not this one.
func otherCard(card string) string {
	if card == goodCard {
		return "tok_lost_reply"
	}
	return goodCard
}

// judgePayments judges the answers to the payments of these orders: captured, declined
// where the card is, or paid from the order's other key.
func judgePayments(orders *record) func(intent, answer) (verdict, int64) {
	return func(in intent, a answer) (verdict, int64) {
		switch {
		case a.Status == http.StatusPaymentRequired && a.Code == "card-declined" && in.card == declinedCard:
			return refused, 0
		case a.Status == http.StatusConflict && a.Code == "already-paid" && in.rival:
			return refused, 0
		}
		var p struct {
			ID      int64  `json:"id"`
			OrderID int64  `json:"order_id"`
			Amount  int64  `json:"amount"`
			Status  string `json:"status"`
		}
		id, _ := orders.id(in.pays)
		if a.Status != http.StatusCreated || json.Unmarshal([]byte(a.Body), &p) != nil ||
			p.OrderID != id || p.Amount != in.amount || p.Status != "captured" || in.card == declinedCard {
			return wrong, 0
		}
		return done, p.ID
	}
}

// refund makes a refund's body, once its payment is there. An altered one is another
// payment's.
func (r records) refund(s send) (body string, ok bool) {
	in := r.refunds.intents[s.intent]
	id, made := r.payments.id(in.refunds)
	if !made {
		return "", false
	}
	if s.altered {
		id++
	}
	return in.refund(id), true
}

// judgeRefunds judges the answers to the refunds of these payments: asked for, or from
// the payment's other key.
func judgeRefunds(payments *record) func(intent, answer) (verdict, int64) {
	return func(in intent, a answer) (verdict, int64) {
		if a.Status == http.StatusConflict && a.Code == "already-refunded" && in.rival {
			return refused, 0
		}
		var f struct {
			ID        int64  `json:"id"`
			PaymentID int64  `json:"payment_id"`
			Amount    int64  `json:"amount"`
			Status    string `json:"status"`
		}
		id, _ := payments.id(in.refunds)
		if a.Status != http.StatusAccepted || json.Unmarshal([]byte(a.Body), &f) != nil ||
			f.PaymentID != id || f.Amount != in.amount || f.Status != "pending" || a.Location != fmt.Sprintf("/refunds/%d", f.ID) {
			return wrong, 0
		}
		return done, f.ID
	}
}

// asked is what was counted of refunds. Call it when no request is under way.
func (rec *record) asked() Refunds {
	payments := map[int]bool{}
	for _, in := range rec.intents {
		payments[in.refunds] = true
	}
	return Refunds{Column: rec.c, Payments: len(payments), Promised: rec.won, Refused: rec.lost}
}

// paid is what was counted of payments. Call it when no request is under way.
func (rec *record) paid(p plan, o *operator) Payments {
	return Payments{Column: rec.c, Orders: len(p.orders), Paid: rec.won, Refused: rec.lost,
		Unknown: len(o.found), Settled: len(o.settled)}
}

// readBooks reads the bank's record and the shop's books as a whole. Those of before
// the storm are taken off, and whoever else pays meanwhile is in both.
func readBooks(ctx context.Context, cfg Config) (b Books, err error) {
	s, err := cfg.Bank.summary(ctx)
	if err != nil {
		return b, err
	}
	all, err := shop.TallyPayments(ctx, cfg.DB.Pool(), 1, math.MaxInt64-1)
	if err != nil {
		return b, err
	}
	refunds, err := shop.TallyRefunds(ctx, cfg.DB.Pool(), 1, math.MaxInt64-1)
	if err != nil {
		return b, err
	}
	ledger, err := shop.ReadLedger(ctx, cfg.DB.Pool())
	for _, a := range ledger.Accounts {
		if a.Name == "cash" {
			b.Cash = a.Balance
		}
	}
	b.Charges, b.ChargedTwice, b.Taken = s.Charges, s.Doubled, s.Amount
	b.Returns, b.ReturnedTwice, b.Returned = s.Refunds, s.RefundedTwice, s.Returned
	b.Payments, b.Refunds, b.LedgerSum = all.Rows, refunds.Rows, ledger.Sum
	return b, err
}

// since is what was added to the books. The ledger has to sum to zero as a whole.
func (b Books) since(before Books) Books {
	b.Charges -= before.Charges
	b.ChargedTwice -= before.ChargedTwice
	b.Taken -= before.Taken
	b.Returns -= before.Returns
	b.ReturnedTwice -= before.ReturnedTwice
	b.Returned -= before.Returned
	b.Payments -= before.Payments
	b.Refunds -= before.Refunds
	b.Cash -= before.Cash
	return b
}
