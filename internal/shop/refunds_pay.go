package shop

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/shop/bank"
)

// refundTask is what it takes to refund a payment.
type refundTask struct {
	RefundID  int64  `json:"refund_id"`
	PaymentID int64  `json:"payment_id"`
	Amount    int64  `json:"amount"` // in minor units
	Card      string `json:"card"`
}

// name is the key of the task, and of its effect: one for each payment.
func (t refundTask) name() string { return fmt.Sprintf("refund:payment:%d", t.PaymentID) }

// payRefund asks the bank for a refund, in a task on a lease. It may be killed anywhere
// and run again: what has been done is found, not done again. What it writes in the end,
// in the final transaction, commits with the end of the task.
func (s *Shop) payRefund(ctx context.Context, t refundTask) error {
	receipt, err := s.askForRefund(ctx, t)
	if err != nil {
		return err // another attempt goes on where this one has stopped
	}
	switch receipt.Status {
	case bank.Refunded:
		key := "post:" + t.name()
		return concludeOnce(ctx, idem.Tx(ctx), key, 2, "refund_done", t.RefundID, key)
	case bank.Declined:
		return concludeOnce(ctx, idem.Tx(ctx), "fail:"+t.name(), 1, "refund_fail", t.RefundID)
	}
	// Only a person can have recorded that, and can correct it.
	return fmt.Errorf("shop: %s was settled with the status %q; it must be %s or %s", t.name(), receipt.Status, bank.Refunded, bank.Declined)
}

// askForRefund is the refund at the bank, once however often and by whomever it is
// called.
func (s *Shop) askForRefund(ctx context.Context, t refundTask) (bank.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, bankPatience)
	defer cancel()
	asked := bank.Refund{Of: chargeName(t.PaymentID), Reference: t.name(), Amount: t.Amount}
	e := idem.Effect{Scope: effectScope, Key: t.name(), Input: asked, Timeout: bankTimeout,
		Reconcile: func(ctx context.Context, _ string) (idem.Evidence, error) { return s.findRefund(ctx, asked) }}
	keyed := honoursKeys(t.Card)
	if keyed {
		e.Provider = idem.Keyed(bankWindow)
	}
	return idem.Call(ctx, e, func(ctx context.Context, key string) (bank.Receipt, error) {
		receipt, err := s.bank.Refund(ctx, key, asked)
		switch {
		case errors.Is(err, bank.ErrUnreachable) && !keyed:
			return receipt, idem.NotApplied(err)
		case errors.Is(err, bank.ErrUnreachable):
			return receipt, err // an earlier call with this key may have been heard
		case errors.Is(err, bank.ErrRefused):
			s.logger.WarnContext(ctx, "shop: the bank refused a refund", "error", err)
			return bank.Receipt{Reference: asked.Reference, Of: asked.Of, Amount: asked.Amount, Card: t.Card, Status: bank.Declined}, nil
		}
		return receipt, err
	})
}

// findRefund is the evidence that the bank's record has of a refund whose reply was lost.
// That there is none proves nothing: the bank may still be at work on it, and a person
// has to decide.
func (s *Shop) findRefund(ctx context.Context, asked bank.Refund) (idem.Evidence, error) {
	found, err := s.bank.FindRefunds(ctx, asked.Reference)
	if err != nil || len(found) == 0 {
		return idem.Evidence{}, err
	}
	return idem.Found(found[0]), nil
}
