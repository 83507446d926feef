package storm

import (
	"fmt"
	"math/rand/v2"
)

const (
	rivalEvery   = 5  // one order in five is paid from two keys at once
	declinedRace = 17 // and of each cycle of cards, the declined one that is here
	maxPayCopies = 4  // copies of a payment that are sent at once
	maxPayLater  = 2  // copies of it that are sent again later
)

// cardCycle is how the orders are paid, in turn. Most cards are in order; the bank
// commits some charges and hangs up, is slow with some, and of some it ignores the
// key, so that what is lost then is known to nobody but the bank.
var cardCycle = [20]string{
	3: "tok_lost_reply", 6: slowCard, 7: declinedCard, 9: "tok_keyless", 11: "tok_keyless_lost",
	13: "tok_lost_reply", 15: "tok_keyless", 16: slowCard, 17: declinedCard,
}

const (
	goodCard     = "tok_ok"
	slowCard     = "tok_slow"
	declinedCard = "tok_declined"
)

// payments are the keys that the orders are paid from: one each; for some two at once,
// which may differ in their cards; and after a decline one with another card.
func payments(orders []intent) (all []intent) {
	for i, order := range orders {
		card := cardCycle[i%len(cardCycle)]
		if card == "" {
			card = goodCard
		}
		first := intent{
			key:       fmt.Sprintf("%s-pay-%d", order.key, len(all)),
			principal: order.principal,
			amount:    order.amount,
			pays:      i,
			card:      card,
			rival:     i%rivalEvery == 0 || i%len(cardCycle) == declinedRace,
		}
		second := first
		second.key += "-again"
		switch {
		case card == declinedCard:
			second.card = goodCard
		case i%(2*rivalEvery) == 0:
			second.card = slowCard
		}
		all = append(all, first)
		switch {
		case first.rival:
			all = append(all, second)
		case card == declinedCard:
			second.after = len(all)
			all = append(all, second)
		}
	}
	return all
}

// payment is a payment's body once its order has an id.
func (i intent) payment(orderID int64) string {
	return fmt.Sprintf(`{"order_id":%d,"card":%q}`, orderID, i.card)
}

// paymentWaves sends all copies of the keys of one order next to each other first, so
// that they meet; then everything again in any order, with altered ones between, and
// the cards that come after a declined one.
func paymentWaves(rng *rand.Rand, payments []intent) [][]send {
	var groups [][]send
	var later []send
	for i, in := range payments {
		plain := send{intent: i}
		again := copies(rng, plain, 1+rng.IntN(maxPayLater))
		if in.after > 0 {
			later = append(later, again...)
			continue
		}
		group := copies(rng, plain, 1+rng.IntN(maxPayCopies))
		if i%hangUpEvery == 0 {
			gone := plain
			gone.hangUp = true
			group = append(group, gone)
		}
		if i > 0 && payments[i-1].pays == in.pays {
			group = append(groups[len(groups)-1], group...)
			groups = groups[:len(groups)-1]
		}
		shuffle(rng, group)
		groups = append(groups, group)
		later = append(later, again...)
		if i%alterEvery == 2 {
			later = append(later, send{intent: i, altered: true})
		}
	}
	shuffle(rng, groups)
	shuffle(rng, later)
	return [][]send{flatten(groups), later}
}
