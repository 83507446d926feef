package bank

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// card is how a card behaves.
type card struct {
	declines bool // charges nothing
	keeps    bool // what was charged is not given back: a refund is declined
	slow     bool // right, but only after Config.Slow
	keyless  bool // ignores the key: every request is a new charge, or a new refund
	loses    bool // commits and hangs up without a reply, the first time per key, or per reference if it ignores keys
}

// cards are all that there are.
var cards = map[string]card{
	"tok_ok":           {},
	"tok_declined":     {declines: true},
	"tok_slow":         {slow: true},
	"tok_lost_reply":   {loses: true},
	"tok_no_refund":    {keeps: true},
	"tok_keyless":      {keyless: true},
	"tok_keyless_lost": {keyless: true, loses: true},
}

// The limits on what one request may say.
const (
	maxKey       = 255               // bytes
	maxReference = 255               // bytes
	maxAmount    = 1_000_000_000_000 // minor units, so that no sum of a demo's comes near 2^63
)

// check reports what is wrong with a charge, for whoever sent it.
func (c Charge) check() error {
	if err := visible("reference", c.Reference, maxReference); err != nil {
		return err
	}
	if c.Amount < 1 || c.Amount > maxAmount {
		return fmt.Errorf("amount must be a whole number of minor units from 1 to %d", int64(maxAmount))
	}
	if _, known := cards[c.Card]; !known {
		return fmt.Errorf("this bank does not know that card; it knows %s", strings.Join(slices.Sorted(maps.Keys(cards)), ", "))
	}
	return nil
}

// check reports what is wrong with the form of a refund.
func (r Refund) check() error {
	if err := visible("of", r.Of, maxReference); err != nil {
		return err
	}
	return visible("reference", r.Reference, maxReference)
}

// visible reports in words if text is empty, too long, or not visible ASCII.
func visible(name, text string, most int) error {
	unseen := func(r rune) bool { return r < '!' || r > '~' }
	if text == "" || len(text) > most || strings.ContainsFunc(text, unseen) {
		return fmt.Errorf("%s must be 1 to %d characters of visible ASCII", name, most)
	}
	return nil
}
