package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
)

// operator settles the charges and refunds of one storm that are unknown, by what the
// bank has on record, as a person would: nobody else knows. Not for concurrent use.
type operator struct {
	db    *idem.DB
	bank  *bank.Client
	first int64 // the storm's customers
	last  int64

	found   map[string]bool // effects that were unknown
	settled map[string]bool // those of them that are not any more, by its decision
}

func newOperator(cfg Config, m marks) *operator {
	first, last := m.customers(cfg.Intents)
	return &operator{db: cfg.DB, bank: cfg.Bank.client(), first: first, last: last,
		found: map[string]bool{}, settled: map[string]bool{}}
}

// settle settles what is unknown now, as far as there is evidence.
func (o *operator) settle(ctx context.Context) error {
	unsettled, err := shop.Unsettled(ctx, o.db.Pool(), o.first, o.last)
	if err != nil {
		return err
	}
	for _, e := range unsettled {
		if !e.Unknown {
			continue // the next who asks for it goes on with it
		}
		if err := o.settleOne(ctx, e); err != nil {
			return fmt.Errorf("storm: settle %s: %w", e.Effect, err)
		}
	}
	return nil
}

// settleOne settles one effect. That the bank has none counts only when its last call
// could not be under way any more as it was asked; until then it is left. A refund that the bank has is left
// to its task, which looks for itself.
func (o *operator) settleOne(ctx context.Context, e shop.UnsettledEffect) error {
	find := o.bank.Find
	if e.Refund {
		find = o.bank.FindRefunds
	}
	receipts, err := find(ctx, e.Effect)
	if err != nil {
		return err
	}
	if e.Refund && len(receipts) > 0 {
		return nil
	}
	o.found[e.Effect] = true
	if len(receipts) == 0 && e.Calling {
		return nil // the next round asks again
	}
	s := admin.Settlement{Scope: e.Scope, Key: e.Effect, As: admin.StatusAbsent, Calls: e.Calls, Actor: "storm",
		Reason: "the bank has nothing with this reference"}
	if len(receipts) > 0 {
		s.As, s.Reason = admin.StatusApplied, "the bank has "+receipts[0].ID
		if s.Result, err = json.Marshal(receipts[0]); err != nil {
			return err
		}
	}
	_, err = admin.SettleEffect(ctx, o.db, s)
	switch {
	case errors.Is(err, admin.ErrRefused):
		return nil // the next round finds out
	case err != nil:
		return err
	}
	o.settled[e.Effect] = true
	return nil
}
