package shop_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
)

func TestPayments_chargesOncePostsAndReplays(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	r.wantLedger(0)
	first := r.pay("k", "tok_ok")
	if want := `{"id":1,"order_id":1,"amount":1500,"status":"captured"}`; first.status != 201 || first.body != want {
		t.Errorf("got %d %s, want 201 %s", first.status, first.body, want)
	}
	again := r.pay("k", "tok_ok")
	if again.status != 201 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeat: got %d %s, want the first answer, marked", again.status, again.body)
	}
	r.wantRefused(r.pay("k", "tok_slow"), 409, "key-mismatch")
	r.wantLedger(1500)
	r.wantRows("shop.payments", 1)
	r.wantStats(`{"orders":1,"unguarded_orders":0,"bookings":0,"payments":1,"bank_charges":1,"refunds":0,"receipts":1}`)
	b.want(1, 0)
	if got, err := b.Find(t.Context(), "charge:payment:1"); err != nil || len(got) != 1 || got[0].Amount != 1500 {
		t.Errorf("the bank has %+v, %v; want one charge of 1500", got, err)
	}
}

func TestPayments_declinedCardIsRememberedAndAnotherMayBeTried(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	first := r.pay("first", "tok_declined")
	r.wantRefused(first, 402, "card-declined")
	if !strings.Contains(first.body, `"safe_new_key":true`) {
		t.Errorf("got %s, which does not say that a new key is safe", first.body)
	}
	if again := r.pay("first", "tok_declined"); again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeat: got %d %s, want the remembered refusal", again.status, again.body)
	}
	r.wantRows("shop.payments where status = 'declined'", 1)
	r.wantLedger(0)
	r.wantPaid(r.pay("second", "tok_ok"))
	r.wantRefused(r.pay("third", "tok_ok"), 409, "already-paid")
	if got := r.pay("third", "tok_ok"); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the third's repeat: got %d %s, want a replay", got.status, got.body)
	}
	r.wantRows("shop.payments", 2)
	r.wantLedger(1500)
	b.want(1, 1)
}

func TestPayments_cardThatTheBankDoesNotKnowIsDeclined(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	r.wantRefused(r.pay("k", "tok_nothing"), 402, "card-declined")
	r.wantPaid(r.pay("another", "tok_ok"))
	b.want(1, 0)
}

func TestPayments_slowAndLostRepliesAreOneCharge(t *testing.T) {
	for _, card := range []string{"tok_slow", "tok_lost_reply", "tok_keyless"} {
		t.Run(card, func(t *testing.T) {
			r, b := openPaying(t, shop.Config{})
			r.wantPaid(r.pay("k", card))
			r.wantPaid(r.pay("k", card))
			r.wantLedger(1500)
			r.wantRows("shop.postings", 2)
			b.want(1, 0)
		})
	}
}

func TestPayments_bankLosesReplies(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	b.faults(bank.Faults{LoseReplies: 3})
	r.wantPaid(r.pay("k", "tok_ok"))
	r.wantLedger(1500)
	b.want(1, 0)
}

// E7: the bank commits, hangs up, and honours no key.
func TestPayments_keylessLostReplyIsUnknownUntilItIsSettled(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	for _, key := range []string{"k", "k", "another", "k"} {
		r.wantRefused(r.pay(key, "tok_keyless_lost"), 409, "outcome-unknown")
	}
	b.want(1, 0)
	r.wantLedger(0)
	r.wantRows("idem.applied_effects where status = 'unknown'", 1)
	found, err := b.Find(t.Context(), "charge:payment:1")
	if err != nil || len(found) != 1 {
		t.Fatalf("the bank has %+v, %v; want one charge", found, err)
	}
	result, err := json.Marshal(found[0])
	if err != nil {
		t.Fatal(err)
	}
	r.settle(admin.StatusApplied, result)
	r.wantPaid(r.pay("k", "tok_keyless_lost"))
	r.wantRefused(r.pay("another", "tok_keyless_lost"), 409, "already-paid")
	r.wantLedger(1500)
	b.want(1, 0)
}

// settle settles the charge of payment 1, as soon as that may be done.
func (r *running) settle(as admin.Status, result json.RawMessage) {
	r.t.Helper()
	r.settleEffect("charge:payment:1", as, result)
}

// settleEffect settles an effect of the shop, as soon as that may be done.
func (r *running) settleEffect(key string, as admin.Status, result json.RawMessage) {
	r.t.Helper()
	waitFor(r.t, "the settlement", func() bool {
		_, err := admin.SettleEffect(r.t.Context(), r.db, admin.Settlement{Scope: "shop", Key: key,
			As: as, Result: result, Actor: "ann", Reason: "the bank's log"})
		if err != nil && !errors.Is(err, admin.ErrCalling) {
			r.t.Fatal(err)
		}
		return err == nil
	})
}

func TestPayments_orderOfNobodyOrOfAStrangerIsNotThere(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	const ann = "Bearer demo-ann"
	r.wantRefused(r.pay("k", "tok_ok", "Authorization", ann), 404, "not-found")
	r.wantRefused(r.must("POST", "/payments", paying(99, "tok_ok"), "Idempotency-Key", "k"), 404, "not-found")
	r.wantRows("shop.payments", 0)
	r.wantRows("idem.idempotency_keys where key = 'k'", 0)
	r.wantPaid(r.pay("k", "tok_ok"))
	r.wantRefused(r.pay("k", "tok_ok", "Authorization", ann), 404, "not-found")
	b.want(1, 0)
}

func TestPayments_refusesWhatIsNoPayment(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	cases := []struct {
		name, body string
		status     int
		code       string
	}{
		{"not JSON", `{"order_id":1,`, 400, "body-malformed"},
		{"another member", `{"order_id":1,"card":"tok_ok","amount":1}`, 400, "body-malformed"},
		{"text for an order", `{"order_id":"1","card":"tok_ok"}`, 400, "body-malformed"},
		{"order 0", paying(0, "tok_ok"), 422, "payment-invalid"},
		{"no order", `{"card":"tok_ok"}`, 422, "payment-invalid"},
		{"no card", `{"order_id":1}`, 422, "payment-invalid"},
		{"a card with a space", paying(1, "tok ok"), 422, "payment-invalid"},
		{"a long card", paying(1, strings.Repeat("c", 65)), 422, "payment-invalid"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := r.must("POST", "/payments", c.body, "Idempotency-Key", "corrected")
			if got.status != c.status || got.code(t) != c.code {
				t.Errorf("got %d %s, want %d %s", got.status, got.body, c.status, c.code)
			}
		})
	}
	r.wantRows("shop.payments", 0)
	b.want(0, 0)
	if got := r.must("POST", "/payments", paying(1, "tok_ok")); got.code(t) != "key-missing" {
		t.Errorf("without a key: got %d %s", got.status, got.body)
	}
	r.wantPaid(r.pay("corrected", "tok_ok"))
	r.wantRefused(r.pay("k", "tok_ok", "Authorization", "Basic x"), 401, "unauthenticated")
}

func TestPayments_needABank(t *testing.T) {
	r := open(t, shop.Config{})
	r.order("o")
	r.wantRefused(r.pay("k", "tok_ok"), 503, "bank-missing")
	r.wantLedger(0)
	for _, at := range []string{"127.0.0.1:8001", "ftp://127.0.0.1", "http://", "http://127.0.0.1:8001/charges", "http://[::1"} {
		if _, err := shop.New(t.Context(), r.pool, shop.Config{Bank: at}); err == nil {
			t.Errorf("a bank at %q: got no error", at)
		}
	}
	for _, cfg := range []shop.Config{{Lease: 1}, {Lease: -1}} {
		if _, err := shop.New(t.Context(), r.pool, cfg); err == nil {
			t.Errorf("%+v: got no error", cfg)
		}
	}
}

// The handler fails after the charge, as one that is killed there: the retry goes on,
// and so does another key.
func TestPayments_goesOnWhereItHasStopped(t *testing.T) {
	for _, fail := range []string{"500", "panic"} {
		for _, next := range []string{"the same key", "another key"} {
			t.Run(fail+", "+next, func(t *testing.T) {
				r, b := openPaying(t, shop.Config{Faults: true})
				if got := r.pay("k", "tok_ok", "X-Demo-Fail", fail); got.status != 500 {
					t.Errorf("got %d %s, want 500", got.status, got.body)
				}
				b.want(1, 0)
				r.wantLedger(0)
				if next == "another key" {
					r.wantRefused(r.pay("another", "tok_declined"), 409, "already-paid")
					r.wantLedger(1500)
				}
				r.wantPaid(r.pay("k", "tok_ok"))
				r.wantLedger(1500)
				b.want(1, 0)
			})
		}
	}
}

// Another key meets a payment that was declined and not concluded: it declines it,
// and pays with its own card.
func TestPayments_declineOfAnotherIsFinishedBeforeTheOwn(t *testing.T) {
	r, b := openPaying(t, shop.Config{Faults: true})
	if got := r.pay("k", "tok_declined", "X-Demo-Fail", "500"); got.status != 500 {
		t.Errorf("got %d %s, want 500", got.status, got.body)
	}
	r.wantRows("shop.payments where status = 'pending'", 1)
	r.wantPaid(r.pay("another", "tok_ok"))
	r.wantRefused(r.pay("k", "tok_declined"), 402, "card-declined")
	r.wantRows("shop.payments where status = 'declined'", 1)
	r.wantLedger(1500)
	b.want(1, 1)
}

func TestPayments_clientThatGoesAwayCollectsItsAnswer(t *testing.T) {
	for _, fail := range []string{"drop-before-commit", "drop-after-commit"} {
		t.Run(fail, func(t *testing.T) {
			r, b := openPaying(t, shop.Config{Faults: true})
			body := paying(1, "tok_ok")
			if got, err := r.send("POST", "/payments", body, "Idempotency-Key", "k", "X-Demo-Fail", fail); err == nil {
				t.Errorf("got %d %s, want a broken connection", got.status, got.body)
			}
			retry := r.pay("k", "tok_ok")
			r.wantPaid(retry)
			if retry.header.Get("Idempotent-Replayed") != "true" {
				t.Error("the retry is no replay")
			}
			r.wantLedger(1500)
			b.want(1, 0)
		})
	}
}

func TestPayments_keyOfOldWithAnotherCardIsSpent(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	r.wantRefused(r.pay("k", "tok_declined"), 402, "card-declined")
	// As if the key's time, and its tombstone's, were over and it had been swept.
	if _, err := r.pool.Exec(t.Context(), "delete from idem.idempotency_keys where key = 'k'"); err != nil {
		t.Fatal(err)
	}
	r.wantRefused(r.pay("k", "tok_ok"), 409, "key-spent")
	b.want(0, 1)
}
