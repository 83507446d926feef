package storm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/storm"
)

func TestReport_writesATable(t *testing.T) {
	r := storm.Report{Seed: 42, Seconds: 1.25, Kills: storm.Kills{Shops: 8, Clients: 1, Banks: 4},
		Network: storm.Faults{Cuts: 1234, Refused: 56, Delays: 7, Repeats: 1},
		Guarded: storm.Column{Path: "/orders", Intents: 2, Sends: 9, Requests: 1009, Answers: map[int]int{201: 8, 409: 1}, Replays: 6,
			Altered: 1, AlteredRefused: 1, Database: shop.Tally{Rows: 2, Intents: 2}},
		Unguarded: storm.Column{Path: "/unguarded/orders", Intents: 2, Sends: 9, Requests: 9, Answers: map[int]int{201: 9}, Differing: 6,
			Altered: 1, Database: shop.Tally{Rows: 9, Intents: 2, Doubled: 2}},
		Bookings: storm.Races{Column: storm.Column{Path: "/bookings", Intents: 3, Requests: 7, Database: shop.Tally{Rows: 1, Intents: 1}},
			Slots: 1, Won: 1, Lost: 2},
		Payments: storm.Payments{Column: storm.Column{Path: "/payments", Intents: 3, Requests: 12, Answers: map[int]int{201: 5, 402: 1, 409: 2},
			Replays: 4, Altered: 1, AlteredRefused: 1, Database: shop.Tally{Rows: 2, Intents: 2}},
			Orders: 2, Paid: 2, Refused: 1, Unknown: 1, Settled: 1,
			Books: storm.Books{Charges: 2, Taken: 1234, Payments: 2, Cash: 1000, Returns: 1, Returned: 234, Refunds: 1}},
		Refunds: storm.Refunds{Column: storm.Column{Path: "/refunds", Intents: 2, Requests: 4, Answers: map[int]int{202: 2, 409: 1}, Replays: 1,
			Database: shop.Tally{Rows: 1, Intents: 1}}, Payments: 1, Promised: 1, Refused: 1},
		Tasks: storm.Tasks{Receipts: shop.Tally{Rows: 2, Intents: 2}, Tasks: shop.Tasks{Done: 3, Again: 1}}}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != wantTable {
		t.Errorf("got\n%s\nwant\n%s", got, wantTable)
	}
	r.Guarded.Database.Rows, r.Tasks.Receipts = 3, shop.Tally{Rows: 3, Intents: 3}
	out.Reset()
	if err := r.Write(&out); err != nil || !strings.HasSuffix(out.String(), "\nThe proof fails: double orders: 1.\n") {
		t.Errorf("a double order: got %v\n%s", err, out.String())
	}
}

// A proof fails by each thing that may be wrong with the money, and by no other.
func TestReport_holdsOnlyIfTheMoneyIsRight(t *testing.T) {
	for says, spoil := range map[string]func(*storm.Payments){
		"":                                      func(*storm.Payments) {},
		"charges at the bank for 1 payments: 2": func(p *storm.Payments) { p.Charges = 2 },
		"payments that were charged more than once: 1":                                func(p *storm.Payments) { p.ChargedTwice = 1 },
		"taken by the bank beyond what was posted: 5":                                 func(p *storm.Payments) { p.Taken = 5 },
		"sum of the ledger, which has to be 0: -1":                                    func(p *storm.Payments) { p.LedgerSum = -1 },
		"orders that were paid more than once: 1":                                     func(p *storm.Payments) { p.Database.Doubled = 1 },
		"orders that were not paid: 1":                                                func(p *storm.Payments) { p.Database.Intents = 0 },
		"keys that were promised the payment of one of 1 orders: 2":                   func(p *storm.Payments) { p.Paid = 2 },
		"charges and refunds of which nobody knows: 1":                                func(p *storm.Payments) { p.Unsettled = 1 },
		"answers of POST /payments that differ from the first one of their intent: 1": func(p *storm.Payments) { p.Differing = 1 },
	} {
		r := storm.Report{
			Guarded:  storm.Column{Intents: 1, Database: shop.Tally{Rows: 1, Intents: 1}},
			Bookings: storm.Races{Slots: 1, Won: 1, Column: storm.Column{Database: shop.Tally{Rows: 1, Intents: 1}}},
			Payments: storm.Payments{Column: storm.Column{Path: "/payments", Database: shop.Tally{Rows: 1, Intents: 1}},
				Orders: 1, Paid: 1, Books: storm.Books{Charges: 1, Payments: 1}},
			Tasks: storm.Tasks{Receipts: shop.Tally{Rows: 1, Intents: 1}},
		}
		spoil(&r.Payments)
		if got := strings.Join(r.Failures(), "; "); got != says {
			t.Errorf("got failures %q, want %q", got, says)
		}
	}
}

// A proof fails by each thing that may be wrong with the tasks, and by no other.
func TestReport_holdsOnlyIfTheTasksAreRight(t *testing.T) {
	for says, spoil := range map[string]func(*storm.Report){
		"":                                   func(*storm.Report) {},
		"receipts for 1 orders: 0, of 0":     func(r *storm.Report) { r.Tasks.Receipts = shop.Tally{} },
		"payments that were not refunded: 1": func(r *storm.Report) { r.Refunds.Database = shop.Tally{} },
		"keys that were promised the refund of one of 1 payments: 2": func(r *storm.Report) { r.Refunds.Promised = 2 },
		"refunds at the bank for 1 in the shop: 0":                   func(r *storm.Report) { r.Payments.Returns = 0 },
		"tasks that are stuck: 3":                                    func(r *storm.Report) { r.Tasks.Open, r.Tasks.GivenUp = 1, 2 },
		"receipts for 1 orders: 2, of 1; tasks that were applied twice: 1": func(r *storm.Report) {
			r.Tasks.Receipts = shop.Tally{Rows: 2, Intents: 1, Doubled: 1}
		},
		"payments that were refunded more than once: 1; tasks that were applied twice: 1": func(r *storm.Report) { r.Payments.ReturnedTwice = 1 },
		"tasks that were applied twice: 1":                                                func(r *storm.Report) { r.Refunds.Database = shop.Tally{Rows: 2, Intents: 1, Doubled: 1} },
		"answers of POST /refunds that differ from the first one of their intent: 1":      func(r *storm.Report) { r.Refunds.Differing = 1 },
	} {
		one := shop.Tally{Rows: 1, Intents: 1}
		r := storm.Report{
			Guarded:  storm.Column{Intents: 1, Database: one},
			Bookings: storm.Races{Slots: 1, Won: 1, Column: storm.Column{Database: one}},
			Payments: storm.Payments{Column: storm.Column{Database: one}, Orders: 1, Paid: 1,
				Books: storm.Books{Charges: 1, Payments: 1, Taken: 5, Returns: 1, Returned: 5, Refunds: 1}},
			Refunds: storm.Refunds{Column: storm.Column{Path: "/refunds", Database: one}, Payments: 1, Promised: 1},
			Tasks:   storm.Tasks{Receipts: one, Tasks: shop.Tasks{Done: 2}},
		}
		spoil(&r)
		if got := strings.Join(r.Failures(), "; "); got != says {
			t.Errorf("got failures %q, want %q", got, says)
		}
	}
}
