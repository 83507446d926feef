package bank

import (
	"errors"
	"fmt"
	"slices"
)

// book is what the log says, by what it is asked for.
type book struct {
	charges, refunds shelf
	summary          Summary
}

// shelf are the receipts of one kind.
type shelf struct {
	byReference map[string][]Receipt
	byKey       map[string][]Receipt // by the key as it was sent, also where the card ignores it
	byOf        map[string][]Receipt // of refunds, by the reference of their charge
}

// Summary counts everything that the log has.
type Summary struct {
	Charges  int64 `json:"charges"`  // captured
	Declined int64 `json:"declined"` // remembered declines of charges
	Amount   int64 `json:"amount"`   // sum of what was captured, in minor units
	// Doubled is the number of references that have more than one captured
	// charge, DoubledKeys that of keys: the money that was taken twice.
	Doubled     int64 `json:"doubled"`
	DoubledKeys int64 `json:"doubled_keys"`
	Refunds     int64 `json:"refunds"`  // carried out
	Returned    int64 `json:"returned"` // sum of what they gave back, in minor units
	// RefundedTwice is the number of charges that have more than one refund: the money
	// that was given back twice.
	RefundedTwice int64 `json:"refunded_twice"`
}

func newBook() book { return book{charges: newShelf(), refunds: newShelf()} }

func newShelf() shelf {
	return shelf{byReference: map[string][]Receipt{}, byKey: map[string][]Receipt{}, byOf: map[string][]Receipt{}}
}

// add takes in an entry. It reports whether it is the first of its kind with its
// reference and card.
func (b *book) add(e entry) (first bool) {
	r, s := e.receipt(), &b.charges
	if e.Kind == kindRefund {
		s = &b.refunds
	}
	first = !slices.ContainsFunc(s.byReference[r.Reference], func(other Receipt) bool { return other.Card == r.Card })
	doubled := file(s.byReference, r.Reference, r)
	doubledKey := e.Key != "" && file(s.byKey, e.Key, r)
	switch {
	case r.Status == Captured:
		b.summary.Charges++
		b.summary.Amount += r.Amount
		b.summary.Doubled += count(doubled)
		b.summary.DoubledKeys += count(doubledKey)
	case r.Status == Refunded:
		b.summary.Refunds++
		b.summary.Returned += r.Amount
		b.summary.RefundedTwice += count(file(s.byOf, r.Of, r))
	case e.Kind == kindCharge:
		b.summary.Declined++
	}
	return first
}

// refundable is the charge that a refund gives back, or says why there is none.
func (b *book) refundable(r Refund) (Charge, error) {
	for _, c := range b.charges.byReference[r.Of] {
		switch {
		case c.Status != Captured:
			continue
		case c.Amount != r.Amount:
			return Charge{}, fmt.Errorf("amount must be that of the charge, %d", c.Amount)
		}
		return c.demand().Charge, nil
	}
	return Charge{}, errors.New("there is no captured charge with the reference that \"of\" says")
}

// file puts r under name. It reports whether two there have moved money now: a third
// does not double anything that is not doubled already.
func file(under map[string][]Receipt, name string, r Receipt) (two bool) {
	under[name] = append(under[name], r)
	moved := 0
	for _, other := range under[name] {
		moved += int(count(other.Status != Declined))
	}
	return moved == 2 && r.Status != Declined
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
