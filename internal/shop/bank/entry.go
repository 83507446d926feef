package bank

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Charge is what is asked for.
type Charge struct {
	// Reference is the caller's own name for what is paid, such as
	// "charge:payment:1". The bank does not read it, and lists by it.
	Reference string `json:"reference"`
	// Amount is in minor units.
	Amount int64 `json:"amount"`
	// Card is one of the bank's cards, such as "tok_ok".
	Card string `json:"card"`
}

// Refund is what is asked for to give the money of a charge back.
type Refund struct {
	// Of is the reference of the charge.
	Of string `json:"of"`
	// Reference is the caller's own name for the refund, such as "refund:payment:1".
	Reference string `json:"reference"`
	// Amount is in minor units: all of the charge.
	Amount int64 `json:"amount"`
}

// Status is what came of a charge or a refund.
type Status string

// The statuses of what is on record.
const (
	Captured Status = "captured"
	Refunded Status = "refunded"
	Declined Status = "declined" // no money was moved, and this is remembered
)

// Receipt is a charge, or a refund, that is on record.
type Receipt struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	Of        string `json:"of,omitzero"` // of a refund: the reference of the charge
	Amount    int64  `json:"amount"`
	Card      string `json:"card"`
	Status    Status `json:"status"`
}

// demand is what a key stands for: a charge, or the refund of one.
type demand struct {
	Charge
	of string // of a refund: the reference of the charge; else empty
}

// moved is the status of a demand that was carried out.
func (d demand) moved() Status {
	if d.of != "" {
		return Refunded
	}
	return Captured
}

// demand is what was asked for.
func (r Receipt) demand() demand { return demand{Charge{r.Reference, r.Amount, r.Card}, r.Of} }

// refund is what was asked for, of a refund.
func (r Receipt) refund() Refund { return Refund{Of: r.Of, Reference: r.Reference, Amount: r.Amount} }

func (r Receipt) check() error {
	switch moved := r.demand().moved(); {
	case r.ID == "":
		return errors.New("the id is empty")
	case r.Status != moved && r.Status != Declined:
		return fmt.Errorf("the status %q is neither %s nor %s", r.Status, moved, Declined)
	}
	return r.demand().check()
}

// entry is one line of the log. Its kind says which member holds what happened.
type entry struct {
	Kind   kind     `json:"kind"`
	Key    string   `json:"key,omitzero"` // as it was sent, also where a card ignores it
	Charge *Receipt `json:"charge,omitzero"`
	Refund *Receipt `json:"refund,omitzero"`
}

type kind string

const (
	kindCharge kind = "charge"
	kindRefund kind = "refund"
)

// newEntry is the entry of a receipt under a key.
func newEntry(key string, r Receipt) entry {
	if r.Of != "" {
		return entry{Kind: kindRefund, Key: key, Refund: &r}
	}
	return entry{Kind: kindCharge, Key: key, Charge: &r}
}

// receipt is what the entry holds.
func (e entry) receipt() Receipt {
	if e.Kind == kindRefund {
		return *e.Refund
	}
	return *e.Charge
}

// line is the entry as the log has it.
func (e entry) line() ([]byte, error) {
	line, err := json.Marshal(e)
	return append(line, '\n'), err
}

// readEntry reads a line, without its end. It is strict: money is counted from it.
func readEntry(line []byte) (e entry, err error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return e, errors.New("it is empty")
	}
	if err := json.Unmarshal(line, &e, json.RejectUnknownMembers(true)); err != nil {
		return e, errors.New(explainJSON(err))
	}
	switch {
	case e.Kind != kindCharge && e.Kind != kindRefund:
		return e, fmt.Errorf("the kind %q is not known to this program", e.Kind)
	case (e.Charge != nil) != (e.Kind == kindCharge) || (e.Refund != nil) != (e.Kind == kindRefund):
		return e, fmt.Errorf("there is no %s in it, or something else", e.Kind)
	case (e.receipt().Of != "") != (e.Kind == kindRefund):
		return e, fmt.Errorf("it is a %s, and says of what, or it does not", e.Kind)
	}
	return e, e.receipt().check()
}
