package shop_test

import (
	"testing"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
)

// paid pays in the background.
func (r *running) paid(key, card string) <-chan answer {
	answered := make(chan answer, 1)
	go func() {
		got, err := r.send("POST", "/payments", paying(1, card), "Idempotency-Key", key)
		if err != nil {
			r.t.Error(err)
		}
		answered <- got
	}()
	return answered
}

// waitForCall waits until a call has been intended.
func (r *running) waitForCall() {
	r.t.Helper()
	waitFor(r.t, "the intention of a call", func() bool {
		var intended bool
		err := r.pool.QueryRow(r.t.Context(), "select count(*) > 0 from idem.applied_effects where status = 'started'").Scan(&intended)
		return err == nil && intended
	})
}

// E6: the bank is killed before it has charged, and after it has.
func TestPayments_bankIsKilledDuringTheCharge(t *testing.T) {
	for name, faults := range map[string]bank.Faults{"before": {DelayBefore: 30_000}, "after": {DelayAfter: 30_000}} {
		t.Run(name, func(t *testing.T) {
			r, b := openPaying(t, shop.Config{})
			b.faults(faults)
			answered := r.paid("k", "tok_ok")
			r.waitForCall()
			if name == "after" {
				waitFor(t, "the charge", func() bool {
					s, err := b.Summary(t.Context())
					return err == nil && s.Charges == 1
				})
			}
			b.process.Kill()
			b.start()
			r.wantPaid(<-answered)
			r.wantLedger(1500)
			b.want(1, 0)
		})
	}
}

func TestPayments_bankComesBackInTime(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	b.process.Kill()
	answered := r.paid("k", "tok_ok")
	r.waitForCall()
	b.start()
	r.wantPaid(<-answered)
	b.want(1, 0)
}

func TestPayments_bankStaysAway(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	b.process.Kill()
	r.wantStats(`{"orders":1,"unguarded_orders":0,"bookings":0,"payments":0,"bank_charges":null,"refunds":0,"receipts":1}`)
	// Whether an earlier call with the key has charged is not known.
	r.wantRefused(r.pay("k", "tok_ok"), 409, "outcome-unknown")
	b.start()
	r.wantRefused(r.pay("another", "tok_declined"), 409, "already-paid") // it has finished the first one's
	r.wantPaid(r.pay("k", "tok_ok"))
	r.wantLedger(1500)
	b.want(1, 0)
}

func TestPayments_bankThatHonoursNoKeyWasNotReached(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	b.process.Kill()
	r.wantRefused(r.pay("k", "tok_keyless"), 503, "unavailable")
	r.wantRows("idem.applied_effects where status = 'absent'", 1)
	b.start()
	r.wantPaid(r.pay("k", "tok_keyless"))
	r.wantLedger(1500)
	b.want(1, 0)
}

// E7: the bank is killed before it has charged, and honours no key.
func TestPayments_keylessChargeThatWasNotMadeIsMadeAfterItIsSettled(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	b.faults(bank.Faults{DelayBefore: 30_000})
	answered := r.paid("k", "tok_keyless")
	r.waitForCall()
	b.process.Kill()
	r.wantRefused(<-answered, 409, "outcome-unknown")
	b.start()
	r.wantRefused(r.pay("k", "tok_keyless"), 409, "outcome-unknown")
	b.want(0, 0)
	r.settle(admin.StatusAbsent, nil)
	r.wantPaid(r.pay("k", "tok_keyless"))
	r.wantLedger(1500)
	b.want(1, 0)
}
