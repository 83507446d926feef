package shop_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
)

// refund asks for the refund of payment 1.
func (r *running) refund(key string, header ...string) answer {
	r.t.Helper()
	return r.must("POST", "/refunds", `{"payment_id":1}`, append(header, "Idempotency-Key", key)...)
}

const pendingRefund = `{"id":1,"payment_id":1,"amount":1500,"status":"pending"}`

// wantRefund reads the only refund there is, by whatever id: one that met another and was
// not made has used up an id, too.
func (r *running) wantRefund(status string) {
	r.t.Helper()
	var id int64
	if err := r.pool.QueryRow(r.t.Context(), "select id from shop.refunds").Scan(&id); err != nil {
		r.t.Fatal(err)
	}
	path := fmt.Sprintf("/refunds/%d", id)
	want := fmt.Sprintf(`{"id":%d,"payment_id":1,"amount":1500,"status":%q}`, id, status)
	if got := r.must("GET", path, ""); got.status != 200 || got.body != want || got.header.Get("Cache-Control") != "no-store" {
		r.t.Errorf("GET %s: got %d %s, want 200 %s", path, got.status, got.body, want)
	}
}

// wantReturned checks the bank's count of refunds, and that none was made twice.
func (b *account) wantReturned(refunds int64) {
	b.t.Helper()
	got, err := b.Summary(b.t.Context())
	if err != nil || got.Charges != 1 || got.Refunds != refunds || got.Returned != 1500*refunds || got.RefundedTwice != 0 {
		b.t.Errorf("the bank: got %+v, %v; want one charge and %d refunds of it, none twice", got, err, refunds)
	}
}

// openRefunding is a shop whose payment 1, of 1500, was made with this card.
func openRefunding(t *testing.T, card string, cfg shop.Config) (*running, *account) {
	t.Helper()
	r, b := openPaying(t, cfg)
	r.wantPaid(r.pay("k", card))
	return r, b
}

func TestRefunds_bankIsAskedOnceByATaskAndItIsPosted(t *testing.T) {
	r, b := openRefunding(t, "tok_ok", shop.Config{})
	first := r.refund("f")
	if first.status != 202 || first.body != pendingRefund || first.header.Get("Location") != "/refunds/1" {
		t.Errorf("got %d %s, Location %q; want 202 %s", first.status, first.body, first.header.Get("Location"), pendingRefund)
	}
	r.waitForTasks()
	again := r.refund("f")
	if again.status != 202 || again.body != first.body || again.header.Get("Location") != "/refunds/1" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeat: got %d %s, want the first answer, marked", again.status, again.body)
	}
	r.wantRefund("done")
	for range 2 {
		r.wantRefused(r.refund("another"), 409, "already-refunded")
	}
	r.wantRows("idem.idempotency_keys where key = 'another' and response_status = 409", 1)
	r.wantLedger(0)
	r.wantRows("shop.postings", 4)
	r.wantRows("idem.tasks where queue = 'shop' and kind = 'refund.pay' and task_key = 'refund:payment:1' and status = 'done'", 1)
	r.wantRows("idem.applied_effects where scope = 'shop' and effect_key = 'refund:payment:1' and status = 'applied' and cause_door = 'task'", 1)
	r.wantStats(`{"orders":1,"unguarded_orders":0,"bookings":0,"payments":1,"bank_charges":1,"refunds":1,"receipts":1}`)
	b.wantReturned(1)
}

func TestRefunds_refusesWhatCannotBeGivenBack(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	r.wantRefused(r.pay("declined", "tok_declined"), 402, "card-declined")
	refused := r.refund("f")
	r.wantRefused(refused, 409, "not-captured")
	if again := r.refund("f"); again.body != refused.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeat: got %d %s, want the remembered refusal", again.status, again.body)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"none there": {`{"payment_id":99}`, 404, "not-found"},
		"payment 0":  {`{"payment_id":0}`, 422, "refund-invalid"},
		"no payment": {`{}`, 422, "refund-invalid"},
		"an amount":  {`{"payment_id":1,"amount":1}`, 400, "body-malformed"},
	} {
		if got := r.must("POST", "/refunds", c.body, "Idempotency-Key", "corrected"); got.status != c.status || got.code(t) != c.code {
			t.Errorf("%s: got %d %s, want %d %s", name, got.status, got.body, c.status, c.code)
		}
	}
	const ann = "Bearer demo-ann"
	r.wantPaid(r.pay("k", "tok_ok"))
	payment2 := `{"payment_id":2}`
	r.wantRefused(r.must("POST", "/refunds", payment2, "Idempotency-Key", "k", "Authorization", ann), 404, "not-found")
	if got := r.must("POST", "/refunds", payment2, "Idempotency-Key", "corrected"); got.status != 202 {
		t.Errorf("corrected: got %d %s, want 202", got.status, got.body)
	}
	r.wantRefused(r.must("GET", "/refunds/1", "", "Authorization", ann), 404, "not-found")
	r.wantRefused(r.must("GET", "/refunds/none", ""), 404, "not-found")
	r.waitForTasks()
	r.wantLedger(0)
	b.wantReturned(1)
}

func TestRefunds_needABank(t *testing.T) {
	r := open(t, shop.Config{})
	r.wantRefused(r.refund("f"), 503, "bank-missing")
}

// E9: whatever the card, a refund is made once, and one whose reply was lost is found.
func TestE9_aRefundHappensOnceWithEveryCard(t *testing.T) {
	for _, card := range []string{"tok_slow", "tok_lost_reply", "tok_keyless"} {
		t.Run(card, func(t *testing.T) {
			r, b := openRefunding(t, card, shop.Config{})
			r.refund("f")
			r.waitForTasks()
			r.wantRefund("done")
			r.wantLedger(0)
			b.wantReturned(1)
		})
	}
}

// E7, from a task: the bank gives back, hangs up, and honours no key.
func TestE7_aRefundOfUnknownOutcomeIsFoundInTheBanksRecord(t *testing.T) {
	r, b := openRefunding(t, "tok_keyless", shop.Config{})
	b.faults(bank.Faults{LoseReplies: 1})
	r.refund("f")
	r.waitForTasks()
	r.wantRefund("done")
	r.wantRows("idem.applied_effects where effect_key = 'refund:payment:1' and calls = 1", 1)
	r.wantLedger(0)
	b.wantReturned(1)
}

// E7, from a task: the bank is killed before it has given anything back, and honours no
// key. That its record has nothing is no evidence; a person decides.
func TestE7_aRefundThatWasNotMadeIsMadeAfterItIsSettled(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the bank's call can not be under way any more")
	}
	r, b := openRefunding(t, "tok_keyless", shop.Config{})
	b.faults(bank.Faults{DelayBefore: 30_000})
	r.refund("f")
	r.waitForCall()
	b.process.Kill()
	b.start()
	waitFor(t, "the effect to be unknown, and another attempt", func() bool {
		var so bool
		err := r.pool.QueryRow(t.Context(), `select exists (select from idem.applied_effects where status = 'unknown')
			and exists (select from idem.tasks where kind = 'refund.pay' and attempts > 1)`).Scan(&so)
		return err == nil && so
	})
	r.wantRefund("pending")
	r.wantLedger(1500)
	b.wantReturned(0)
	r.settleEffect("refund:payment:1", admin.StatusAbsent, nil)
	r.waitForTasks()
	r.wantRefund("done")
	r.wantLedger(0)
	b.wantReturned(1)
}

func TestRefunds_declinedByTheBankHasFailed(t *testing.T) {
	r, b := openRefunding(t, "tok_no_refund", shop.Config{})
	r.refund("f")
	r.waitForTasks()
	r.wantRefund("failed")
	r.wantRefused(r.refund("another"), 409, "already-refunded")
	r.wantLedger(1500)
	b.wantReturned(0)
}

func TestRefunds_waitForABankThatIsAway(t *testing.T) {
	r, b := openRefunding(t, "tok_ok", shop.Config{})
	b.process.Kill()
	if got := r.refund("f"); got.status != 202 {
		t.Errorf("got %d %s, want 202: the bank is asked later", got.status, got.body)
	}
	r.waitForCall()
	r.wantRefund("pending")
	b.start()
	r.waitForTasks()
	r.wantRefund("done")
	r.wantLedger(0)
	b.wantReturned(1)
}

// E9: two keys for one payment, fifty requests at once, on two shops that both work.
func TestE9_manyRequestsForOnePaymentAreOneRefund(t *testing.T) {
	b := openBank(t)
	cfg := shop.Config{Bank: b.URL, Lease: time.Second}
	url := pgtest.NewURL(t)
	shops := []*running{openOn(t, pgtest.Pool(t, url), cfg), openOn(t, pgtest.Pool(t, url), cfg)}
	r := shops[0]
	r.order("o")
	r.wantPaid(r.pay("k", "tok_ok"))
	b.faults(bank.Faults{LoseReplies: 2, DelayBefore: 50})
	var mu sync.Mutex
	told := map[string]map[int]bool{"f": {}, "another": {}}
	var all sync.WaitGroup
	for i := range 25 {
		for key := range told {
			all.Go(func() {
				got := shops[i%2].refund(key)
				mu.Lock()
				defer mu.Unlock()
				told[key][got.status] = true
			})
		}
	}
	all.Wait()
	r.waitForTasks()
	delete(told["f"], 425)
	delete(told["another"], 425)
	first, second := told["f"], told["another"]
	if len(first) != 1 || len(second) != 1 || first[202] == second[202] || first[409] == second[409] {
		t.Errorf("the keys were told %v and %v, want one 202 and one 409", first, second)
	}
	r.wantRefund("done")
	r.wantLedger(0)
	r.wantRows("shop.refunds", 1)
	b.wantReturned(1)
	r.wantSound()
}

func TestOrders_sendOneReceiptEach(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	for range 3 {
		r.order("k")
	}
	r.order("another")
	if got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "failed", "X-Demo-Fail", "500"); got.status != 500 {
		t.Errorf("got %d %s, want 500", got.status, got.body)
	}
	r.waitForTasks()
	r.wantRows("shop.receipts", 2)
	r.wantRows("idem.tasks where queue = 'shop' and kind = 'receipt.send' and task_key = any ('{receipt:1,receipt:2}')", 2)
	r.wantRows("idem.tasks", 2) // an order that was rolled back has none
	r.wantRows("idem.tasks where cause_door = 'request' and cause_scope = 'guest' and cause_key = 'k'", 1)
}

// A shop that stops lets its attempt end, which does not reach the bank, and another one
// does the task.
func TestRun_leavesItsTasksToOthersWhenItIsStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("waits as long as the shop asks a bank that is away")
	}
	b := openBank(t)
	url := pgtest.NewURL(t)
	cfg := shop.Config{Bank: b.URL, Lease: 10 * time.Minute}
	r := openOn(t, pgtest.Pool(t, url), cfg)
	r.order("o")
	r.wantPaid(r.pay("k", "tok_ok"))
	r.waitForTasks()
	b.process.Kill()
	r.refund("f")
	r.waitForCall() // it will not be heard as long as the shop lives
	r.close()
	r.wantRows("idem.tasks where status = 'pending' and kind = 'refund.pay'", 1)
	b.start()
	next := openOn(t, pgtest.Pool(t, url), cfg)
	next.waitForTasks()
	next.wantRefund("done")
	b.wantReturned(1)
	next.wantSound()
}

func TestTallies_countReceiptsRefundsAndTasks(t *testing.T) {
	r, b := openRefunding(t, "tok_ok", shop.Config{})
	r.waitForTasks()
	again := int64(0) // what was put off while the bank was away
	want := func(when string, receipts, refunds int64, tasks shop.Tasks) {
		t.Helper()
		for _, c := range []struct{ first, last int64 }{{123, 123}, {1, 122}, {124, 200}} {
			one, many, counted := shop.Tally{Rows: receipts, Intents: receipts}, shop.Tally{Rows: refunds, Intents: refunds}, tasks
			if c.first != 123 {
				one, many, counted = shop.Tally{}, shop.Tally{}, shop.Tasks{}
			}
			if c.first == 123 {
				counted.Again = again
			}
			gotOne, err1 := shop.TallyReceipts(t.Context(), r.pool, c.first, c.last)
			gotMany, err2 := shop.TallyRefunds(t.Context(), r.pool, c.first, c.last)
			got, err3 := shop.TallyTasks(t.Context(), r.pool, c.first, c.last)
			if err1 != nil || err2 != nil || err3 != nil || gotOne != one || gotMany != many || got != counted {
				t.Errorf("%s, %d to %d: got %+v %+v %+v, %v %v %v", when, c.first, c.last, gotOne, gotMany, got, err1, err2, err3)
			}
		}
	}
	want("paid", 1, 0, shop.Tasks{Done: 1})
	b.process.Kill()
	r.refund("f")
	want("asked for", 1, 0, shop.Tasks{Done: 1, Open: 1})
	b.start()
	r.waitForTasks()
	if err := r.pool.QueryRow(t.Context(), "select count(*) from idem.tasks where takes > 1").Scan(&again); err != nil {
		t.Fatal(err)
	}
	want("refunded", 1, 1, shop.Tasks{Done: 2})
	if _, err := r.pool.Exec(t.Context(), `update idem.tasks set status = 'failed', last_error = 'x' where kind = 'refund.pay'`); err != nil {
		t.Fatal(err)
	}
	want("given up", 1, 1, shop.Tasks{Done: 1, GivenUp: 1})
}
