package storm

import (
	"fmt"
	"math/rand/v2"
)

const (
	refundEvery  = 3 // of the payments that are made from one key, one in three is refunded
	refundRivals = 3 // and of those one in three from two keys at once
	maxAskCopies = 3 // copies of a refund that are sent at once
)

// refunds are the keys that payments are given back from: for some two at once. They are
// of payments that come to an end whatever meets whom: of one key, with a card that is
// not declined.
func refunds(payments []intent) (all []intent) {
	sound, asked := 0, 0
	for i, p := range payments {
		if p.rival || p.after > 0 || p.card == declinedCard {
			continue
		}
		if sound++; sound%refundEvery != 0 {
			continue
		}
		asked++
		first := intent{
			key:       p.key + "-refund",
			principal: p.principal,
			amount:    p.amount,
			refunds:   i,
			rival:     asked%refundRivals == 0,
		}
		all = append(all, first)
		if first.rival {
			second := first
			second.key += "-again"
			all = append(all, second)
		}
	}
	return all
}

// refund is a refund's body once its payment has an id.
func (i intent) refund(paymentID int64) string { return fmt.Sprintf(`{"payment_id":%d}`, paymentID) }

// refundWaves sends all copies of the keys for one payment next to each other first, so
// that they meet; then everything again in any order, with altered ones between.
func refundWaves(rng *rand.Rand, refunds []intent) [][]send {
	var groups [][]send
	var later []send
	for i, in := range refunds {
		plain := send{intent: i}
		group := copies(rng, plain, 1+rng.IntN(maxAskCopies))
		if i > 0 && refunds[i-1].refunds == in.refunds {
			group = append(groups[len(groups)-1], group...)
			groups = groups[:len(groups)-1]
		}
		shuffle(rng, group)
		groups = append(groups, group)
		later = append(later, plain)
		if i%alterEvery == 2 {
			later = append(later, send{intent: i, altered: true})
		}
	}
	shuffle(rng, groups)
	shuffle(rng, later)
	return [][]send{flatten(groups), later}
}
