package bank_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
)

const charged = "charge:payment:1"

func refunding() bank.Refund {
	return bank.Refund{Of: charged, Reference: "refund:payment:1", Amount: 1500}
}

func (r *running) mustRefund(key string) bank.Receipt {
	r.t.Helper()
	receipt, err := r.Refund(r.t.Context(), key, refunding())
	if err != nil {
		r.t.Fatalf("refund under %s: %v", key, err)
	}
	return receipt
}

func (r *running) wantRefunds(want int) []bank.Receipt {
	r.t.Helper()
	got, err := r.FindRefunds(r.t.Context(), "refund:payment:1")
	if err != nil || len(got) != want {
		r.t.Errorf("find the refunds: got %+v and %v, want %d", got, err, want)
	}
	return got
}

func TestRefund_aRepeatIsTheRefundOnRecordAlsoAfterARestart(t *testing.T) {
	for card, want := range map[string]bank.Status{"tok_ok": bank.Refunded, "tok_no_refund": bank.Declined} {
		b := start(t, bank.Config{})
		b.must("k", paying(card))
		first := b.mustRefund("r")
		if first.Status != want || !strings.HasPrefix(first.ID, "re_") || first.Of != charged || first.Amount != 1500 || first.Card != card {
			t.Errorf("%s: got %+v, want %s", card, first, want)
		}
		b = b.again()
		if again := b.mustRefund("r"); again != first {
			t.Errorf("%s: a repeat after a restart got %+v, want %+v", card, again, first)
		}
		if got := b.wantRefunds(1); len(got) == 1 && got[0] != first {
			t.Errorf("%s: on record is %+v, want %+v", card, got[0], first)
		}
		summary := bank.Summary{Charges: 1, Amount: 1500}
		if want == bank.Refunded {
			summary.Refunds, summary.Returned = 1, 1500
		}
		b.wantFound(charged, 1)
		b.wantSummary(summary)
	}
}

func TestRefund_behavesAsTheCardOfItsCharge(t *testing.T) {
	b := start(t, bank.Config{})
	_, err := b.Charge(t.Context(), "k", paying("tok_lost_reply"))
	wantLost(t, err)
	_, err = b.Refund(t.Context(), "r", refunding())
	wantLost(t, err)
	if got := b.mustRefund("r"); got != b.wantRefunds(1)[0] {
		t.Errorf("a repeat got %+v, want what is on record", got)
	}

	b = start(t, bank.Config{})
	_, err = b.Charge(t.Context(), "k", paying("tok_keyless_lost"))
	wantLost(t, err)
	_, err = b.Refund(t.Context(), "r", refunding())
	wantLost(t, err)
	b.mustRefund("r")
	b.mustRefund("r")
	b.wantRefunds(3)
	b.wantSummary(bank.Summary{Charges: 1, Amount: 1500, Refunds: 3, Returned: 4500, RefundedTwice: 1})
	b = b.again()
	b.wantSummary(bank.Summary{Charges: 1, Amount: 1500, Refunds: 3, Returned: 4500, RefundedTwice: 1})
}

func TestRefund_aSecondKeyIsASecondRefund(t *testing.T) {
	b := start(t, bank.Config{})
	b.must("k", paying("tok_ok"))
	if b.mustRefund("r") == b.mustRefund("another") {
		t.Error("two keys got one refund")
	}
	b.wantSummary(bank.Summary{Charges: 1, Amount: 1500, Refunds: 2, Returned: 3000, RefundedTwice: 1})
}

func TestRefund_refusesWhatIsNoRefund(t *testing.T) {
	b := start(t, bank.Config{})
	b.must("k", paying("tok_ok"))
	b.must("declined", bank.Charge{Reference: "charge:payment:2", Amount: 1500, Card: "tok_declined"})
	for name, f := range map[string]bank.Refund{
		"no charge":         {Of: "charge:payment:3", Reference: "r", Amount: 1500},
		"a declined charge": {Of: "charge:payment:2", Reference: "r", Amount: 1500},
		"more than charged": {Of: charged, Reference: "r", Amount: 1501},
		"no reference":      {Of: charged, Amount: 1500},
		"of nothing":        {Reference: "r", Amount: 1500},
	} {
		if _, err := b.Refund(t.Context(), "r", f); !errors.Is(err, bank.ErrRefused) || !strings.Contains(err.Error(), "refund-invalid") {
			t.Errorf("%s: got %v, want ErrRefused with refund-invalid", name, err)
		}
	}
	// The key of a charge is no refund's, and the other way round.
	_, err := b.Refund(t.Context(), "k", refunding())
	wantUnknown(t, err)
	b.mustRefund("r")
	_, err = b.Charge(t.Context(), "r", paying("tok_ok"))
	wantUnknown(t, err)
	b.wantSummary(bank.Summary{Charges: 1, Declined: 1, Amount: 1500, Refunds: 1, Returned: 1500})
	b.stop()
	if _, err := b.Refund(t.Context(), "r", refunding()); !errors.Is(err, bank.ErrUnreachable) {
		t.Errorf("a bank that is not there: got %v, want ErrUnreachable", err)
	}
}
