package shop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/shop/bank"
)

const (
	// bankTimeout is for one call: a bank that takes longer is asked again.
	bankTimeout = 5 * time.Second
	// bankPatience is for all calls of one request. It ends well before the handler's
	// limit, so that the client is told what is the matter.
	bankPatience = 8 * time.Second
	// bankWindow is how long the shop relies on a key; the bank keeps keys for ever.
	bankWindow = 24 * time.Hour
)

// charge charges a payment's card, once however often and by whomever it is called,
// and returns what the payment has come to: captured or declined.
func (s *Shop) charge(ctx context.Context, p payment) (paymentStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, bankPatience)
	defer cancel()
	name := chargeName(p.ID)
	asked := bank.Charge{Reference: name, Amount: p.Amount, Card: p.card}
	e := idem.Effect{Scope: effectScope, Key: name, Input: asked, Timeout: bankTimeout}
	keyed := honoursKeys(p.card)
	if keyed {
		e.Provider = idem.Keyed(bankWindow)
	}
	receipt, err := idem.Call(ctx, e, func(ctx context.Context, key string) (bank.Receipt, error) {
		receipt, err := s.bank.Charge(ctx, key, asked)
		switch {
		case errors.Is(err, bank.ErrUnreachable) && !keyed:
			// A call without keys is made again only after proof like this one.
			return receipt, idem.NotApplied(err)
		case errors.Is(err, bank.ErrUnreachable):
			// An earlier call with this key may have charged.
			return receipt, err
		case errors.Is(err, bank.ErrRefused):
			// The bank's word is final: recorded as a decline, no later call can charge
			// what is declined here.
			s.logger.WarnContext(ctx, "shop: the bank refused a charge", "error", err)
			return bank.Receipt{Reference: asked.Reference, Amount: asked.Amount, Card: asked.Card, Status: bank.Declined}, nil
		}
		return receipt, err
	})
	if err != nil {
		return pending, err
	}
	switch receipt.Status {
	case bank.Captured:
		return captured, nil
	case bank.Declined:
		return declined, nil
	}
	// Only a person can have recorded that.
	return pending, fmt.Errorf("shop: %s was settled with the status %q; it must be %s or %s", name, receipt.Status, bank.Captured, bank.Declined)
}

// honoursKeys is what the shop knows of the banks behind the cards.
func honoursKeys(card string) bool { return !strings.HasPrefix(card, "tok_keyless") }

// chargeName is the key of a payment's charge, and its reference at the bank.
func chargeName(payment int64) string { return fmt.Sprintf("charge:payment:%d", payment) }
