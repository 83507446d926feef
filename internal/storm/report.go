package storm

import (
	"fmt"

	"github.com/idem-go/idem/internal/shop"
)

// Column is what happened at one path, as clients saw it and as the database
// has it.
type Column struct {
	Path           string      `json:"path"`
	Intents        int         `json:"intents"`
	Sends          int         `json:"sends"`           // requests that were planned
	Requests       int         `json:"requests"`        // with those that clients or the network sent again
	Answers        map[int]int `json:"answers"`         // by status
	HungUp         int         `json:"hung_up"`         // clients that did not wait
	GaveUp         int         `json:"gave_up"`         // no definite answer during the storm
	Undecided      int         `json:"undecided"`       // none after it, either
	Replays        int         `json:"replays"`         // marked Idempotent-Replayed
	Differing      int         `json:"differing"`       // unlike the first answer to the same intent
	RanTwice       int         `json:"ran_twice"`       // intents with more than one answer that is no replay
	Wrong          int         `json:"wrong"`           // first answers that the intent may not get
	Altered        int         `json:"altered"`         // another request under a used key
	AlteredRefused int         `json:"altered_refused"` // of them refused as a mismatch
	Given          Given       `json:"given"`
	Database       shop.Tally  `json:"database"`
}

// Given are the whole answers that shops gave to the network, to clients that had gone and
// to requests that it repeated, too.
type Given struct {
	Answers map[int]int `json:"answers"` // by status
	Replays int         `json:"replays"` // marked Idempotent-Replayed
}

// doubles is how many rows there are beyond one for each intent.
func (c Column) doubles() int64 { return c.Database.Rows - c.Database.Intents }

// Races is what came of customers who wanted the same slot.
type Races struct {
	Column
	Slots int `json:"slots"`
	Won   int `json:"won"`  // customers who got a slot
	Lost  int `json:"lost"` // customers who were told that it is taken
}

// Faults is what the network did.
type Faults struct {
	Cuts    int64 `json:"cuts"`    // connections cut under a request or its answer
	Refused int64 `json:"refused"` // connections refused, mostly because the shop had been killed
	Delays  int64 `json:"delays"`  // pieces of a request or an answer that were delayed
	Repeats int   `json:"repeats"` // requests that it sent again by itself
}

// Kills is how many processes were ended with SIGKILL.
type Kills struct {
	Shops   int `json:"shops"`
	Clients int `json:"clients"`
	Banks   int `json:"banks"` // how often the one bank was
}

// Payments is what came of paying for the orders.
type Payments struct {
	Column        // an intent is a key; the database has the captured payments, by order
	Orders    int `json:"orders"`    // that were to be paid
	Paid      int `json:"paid"`      // keys that were told of a payment
	Refused   int `json:"refused"`   // keys that were told of a decline, or of the other key's payment
	Unknown   int `json:"unknown"`   // effects that were found unknown
	Settled   int `json:"settled"`   // of them by the bank's record
	Unsettled int `json:"unsettled"` // effects that are started or unknown in the end
	Books     `json:"books"`
}

// Books are what the bank has charged and given back, by its own record, and what the
// shop's books say of it.
type Books struct {
	Charges       int64 `json:"charges"`        // captured at the bank
	ChargedTwice  int64 `json:"charged_twice"`  // references that were, more than once
	Taken         int64 `json:"taken"`          // the sum of what it captured, in minor units
	Returns       int64 `json:"returns"`        // refunds at the bank
	ReturnedTwice int64 `json:"returned_twice"` // charges that have more than one
	Returned      int64 `json:"returned"`       // the sum of what it gave back, in minor units
	Payments      int64 `json:"payments"`       // captured in the shop
	Refunds       int64 `json:"refunds"`        // done in the shop
	Cash          int64 `json:"cash"`           // what both were posted to its cash with
	LedgerSum     int64 `json:"ledger_sum"`     // of all accounts
}

// kept is what the bank has taken and not given back.
func (b Books) kept() int64 { return b.Taken - b.Returned }

// Refunds is what came of giving payments back.
type Refunds struct {
	Column       // an intent is a key; the database has the refunds that are done, by payment
	Payments int `json:"payments"` // that were to be given back
	Promised int `json:"promised"` // keys that were told of a refund
	Refused  int `json:"refused"`  // keys that were told of the other key's
}

// Tasks is what came of the work in the background.
type Tasks struct {
	Receipts shop.Tally `json:"receipts"` // by order
	shop.Tasks
}

// stuck is how many tasks have not come to the end that they are meant to.
func (t Tasks) stuck() int64 { return t.Open + t.GivenUp }

// Report is what a storm came to.
type Report struct {
	Seed      uint64   `json:"seed"`
	Seconds   float64  `json:"seconds"`
	Kills     Kills    `json:"kills"`
	Network   Faults   `json:"network"`
	Guarded   Column   `json:"guarded"`
	Unguarded Column   `json:"unguarded"`
	Bookings  Races    `json:"bookings"`
	Payments  Payments `json:"payments"`
	Refunds   Refunds  `json:"refunds"`
	Tasks     Tasks    `json:"tasks"`
	Clumsy    Clumsy   `json:"clumsy"`
	// Violations are the broken invariants of idem.Check, after the storm.
	Violations []string `json:"violations,omitempty"`
}

// appliedTwice is how many receipts and refunds there are beyond one for each order and
// payment.
func (r *Report) appliedTwice() int64 {
	receipts, refunds := r.Tasks.Receipts, r.Refunds.Database
	return receipts.Rows - receipts.Intents + max(refunds.Rows-refunds.Intents, r.Payments.ReturnedTwice)
}

// provingIntents is from how many intents on a storm must have met duplicates:
// one that doubles nothing where nothing guards has proved nothing.
const provingIntents = 50

// Holds reports whether every intent had one outcome, and whether the storm was
// one. Failures says what is wrong.
func (r *Report) Holds() bool { return len(r.Failures()) == 0 }

// Failures lists what does not hold, each as a sentence's part.
func (r *Report) Failures() (failures []string) {
	fail := func(broken bool, format string, args ...any) {
		if broken {
			failures = append(failures, fmt.Sprintf(format, args...))
		}
	}
	// Counts follow what they count, so that no sentence has to agree with one.
	g, u, b, p := r.Guarded, r.Unguarded, r.Bookings, r.Payments
	f, tasks := r.Refunds, r.Tasks
	for _, c := range []Column{g, b.Column, p.Column, f.Column} {
		fail(c.Differing > 0, "answers of POST %s that differ from the first one of their intent: %d", c.Path, c.Differing)
		fail(c.RanTwice > 0, "intents at POST %s with more than one answer that is no replay: %d", c.Path, c.RanTwice)
		fail(c.Wrong > 0, "intents at POST %s with an answer that is not theirs: %d", c.Path, c.Wrong)
		fail(c.Undecided > 0, "requests to POST %s without a definite answer: %d", c.Path, c.Undecided)
		fail(c.AlteredRefused != c.Altered, "mismatches at POST %s that were not refused: %d", c.Path, c.Altered-c.AlteredRefused)
	}
	fail(g.doubles() != 0, "double orders: %d", g.doubles())
	fail(g.Database.Intents != int64(g.Intents), "intents without an order: %d", int64(g.Intents)-g.Database.Intents)
	fail(b.Database.Rows != int64(b.Slots) || b.Database.Doubled != 0 || b.Database.Intents != int64(b.Slots),
		"bookings for %d raced slots: %d", b.Slots, b.Database.Rows)
	fail(b.Won != b.Slots, "customers who were promised one of %d slots: %d", b.Slots, b.Won)
	fail(p.Charges != p.Payments, "charges at the bank for %d payments: %d", p.Payments, p.Charges)
	fail(p.ChargedTwice != 0, "payments that were charged more than once: %d", p.ChargedTwice)
	fail(p.kept() != p.Cash, "taken by the bank beyond what was posted: %d", p.kept()-p.Cash)
	fail(p.LedgerSum != 0, "sum of the ledger, which has to be 0: %d", p.LedgerSum)
	fail(p.Database.Doubled != 0, "orders that were paid more than once: %d", p.Database.Doubled)
	fail(p.Database.Intents != int64(p.Orders), "orders that were not paid: %d", int64(p.Orders)-p.Database.Intents)
	fail(p.Paid != p.Orders, "keys that were promised the payment of one of %d orders: %d", p.Orders, p.Paid)
	fail(p.Unsettled != 0, "charges and refunds of which nobody knows: %d", p.Unsettled)
	fail(tasks.Receipts.Rows != g.Database.Rows || tasks.Receipts.Intents != g.Database.Rows,
		"receipts for %d orders: %d, of %d", g.Database.Rows, tasks.Receipts.Rows, tasks.Receipts.Intents)
	fail(f.Database.Intents != int64(f.Payments), "payments that were not refunded: %d", int64(f.Payments)-f.Database.Intents)
	fail(f.Promised != f.Payments, "keys that were promised the refund of one of %d payments: %d", f.Payments, f.Promised)
	fail(p.Returns != p.Books.Refunds, "refunds at the bank for %d in the shop: %d", p.Books.Refunds, p.Returns)
	fail(p.ReturnedTwice != 0, "payments that were refunded more than once: %d", p.ReturnedTwice)
	fail(tasks.stuck() != 0, "tasks that are stuck: %d", tasks.stuck())
	fail(r.appliedTwice() != 0, "tasks that were applied twice: %d", r.appliedTwice())
	fail(r.Clumsy.Refused != r.Clumsy.Sent, "mistaken requests that were not refused for what they are: %d", r.Clumsy.Sent-r.Clumsy.Refused)
	fail(len(r.Violations) > 0, "rows that break an invariant: %d", len(r.Violations))
	if g.Intents >= provingIntents {
		fail(u.doubles() == 0, "nothing was doubled without the guard, so the storm proved nothing")
		fail(g.Replays == 0, "nothing was replayed, so the storm proved nothing")
		fail(r.Kills.Shops == 0 || r.Network.Cuts == 0, "no shop was killed or no connection cut, so the storm proved nothing")
		fail(r.Kills.Banks == 0, "the bank was not killed, so the storm proved nothing")
		fail(p.Unknown == 0 || p.Refused == 0, "no charge became unknown or no payment was refused, so the storm proved nothing")
		fail(f.Payments == 0 || f.Refused == 0, "nothing was refunded or no refund refused, so the storm proved nothing")
		fail(g.Altered == 0 || b.Lost == 0, "nothing was altered or nobody lost a race, so the storm proved nothing")
	}
	return failures
}
