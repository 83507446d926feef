package bank_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/shop/bank"
)

func TestCharge_aRepeatIsTheChargeOnRecordAlsoAfterARestart(t *testing.T) {
	b := start(t, bank.Config{Slow: time.Millisecond})
	for _, card := range []string{"tok_ok", "tok_slow", "tok_declined"} {
		want := bank.Captured
		if card == "tok_declined" {
			want = bank.Declined
		}
		first := b.must(card, paying(card))
		if first.Status != want || !strings.HasPrefix(first.ID, "ch_") || first.Amount != 1500 || first.Reference != "charge:payment:1" {
			t.Errorf("%s: got %+v, want %s", card, first, want)
		}
		if again := b.must(card, paying(card)); again != first {
			t.Errorf("%s: a repeat got %+v, want %+v", card, again, first)
		}
		b = b.again()
		if again := b.must(card, paying(card)); again != first {
			t.Errorf("%s: a repeat after a restart got %+v, want %+v", card, again, first)
		}
	}
	if got := lines(t, b.log); len(got) != 3 {
		t.Errorf("the log has %d lines, want 3: %q", len(got), got)
	}
	b.wantSummary(bank.Summary{Charges: 2, Declined: 1, Amount: 3000, Doubled: 1})
}

func TestCharge_manyWithOneKeyAtOnceAreOneCharge(t *testing.T) {
	for _, card := range []string{"tok_ok", "tok_slow", "tok_declined", "tok_lost_reply"} {
		t.Run(card, func(t *testing.T) {
			b := start(t, bank.Config{Slow: 50 * time.Millisecond, Faults: bank.Faults{DelayBefore: 20}})
			var mu sync.Mutex
			ids, lost := map[string]int{}, 0
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					receipt, err := b.Charge(t.Context(), "k", paying(card))
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						lost++
						return
					}
					ids[receipt.ID]++
				})
			}
			all.Wait()
			wantLost := 0
			if card == "tok_lost_reply" {
				wantLost = 1
			}
			if len(ids) != 1 || lost != wantLost {
				t.Errorf("got the charges %v and %d lost replies, want one charge and %d", ids, lost, wantLost)
			}
			if got := lines(t, b.log); len(got) != 1 {
				t.Errorf("the log has %d lines, want 1: %q", len(got), got)
			}
		})
	}
}

func TestCharge_aLostReplyIsACharge(t *testing.T) {
	b := start(t, bank.Config{})
	_, err := b.Charge(t.Context(), "k", paying("tok_lost_reply"))
	wantLost(t, err)
	recorded := b.wantFound("charge:payment:1", 1)
	if got := b.must("k", paying("tok_lost_reply")); got != recorded[0] {
		t.Errorf("a repeat got %+v, want what is on record, %+v", got, recorded[0])
	}
	_, err = b.Charge(t.Context(), "another", paying("tok_lost_reply"))
	wantLost(t, err)
}

func TestCharge_aCardThatIgnoresKeysIsChargedEachTime(t *testing.T) {
	b := start(t, bank.Config{})
	if first, second := b.must("k", paying("tok_keyless")), b.must("k", paying("tok_keyless")); first.ID == second.ID {
		t.Errorf("got the charge %s twice, want two", first.ID)
	}
	_, err := b.Charge(t.Context(), "k", paying("tok_keyless_lost"))
	wantLost(t, err)
	b = b.again() // the first time per reference is not forgotten
	b.must("k", paying("tok_keyless_lost"))
	other := bank.Charge{Reference: "charge:payment:2", Amount: 1, Card: "tok_keyless_lost"}
	_, err = b.Charge(t.Context(), "k", other)
	wantLost(t, err)
	b.wantFound("charge:payment:1", 4)
	b.wantSummary(bank.Summary{Charges: 5, Amount: 6001, Doubled: 1, DoubledKeys: 1})
}

func TestCharge_anotherChargeUnderAKeyIsRefusedWithoutAWordOnMoney(t *testing.T) {
	b := start(t, bank.Config{})
	first := b.must("k", paying("tok_ok"))
	for name, c := range map[string]bank.Charge{
		"amount":       {Reference: first.Reference, Amount: 1, Card: first.Card},
		"reference":    {Reference: "charge:payment:2", Amount: first.Amount, Card: first.Card},
		"card":         paying("tok_declined"),
		"unknown card": paying("tok_nothing"),
		"no amount":    {Reference: first.Reference, Card: first.Card},
	} {
		_, err := b.Charge(t.Context(), "k", c)
		wantUnknown(t, err)
		if err == nil || !strings.Contains(err.Error(), "key-mismatch") {
			t.Errorf("another %s: got %v, want key-mismatch", name, err)
		}
	}
	b.wantSummary(bank.Summary{Charges: 1, Amount: 1500})
}

func TestCharge_anotherChargeUnderAKeyIsRefusedWhileTheFirstIsUnderWay(t *testing.T) {
	b := start(t, bank.Config{Slow: bank.MaxDelay})
	first := make(chan error, 1)
	go func() {
		_, err := b.Charge(context.WithoutCancel(t.Context()), "k", paying("tok_slow"))
		first <- err
	}()
	other := paying("tok_slow")
	other.Amount = 0 // cannot take the key itself
	eventually(t, "the first request has the key", func() bool {
		_, err := b.Charge(t.Context(), "k", other)
		return err != nil && strings.Contains(err.Error(), "key-mismatch")
	})
	b.wantFound("charge:payment:1", 0)
	b.stop() // ends the delay, not the charge
	if err := <-first; err != nil {
		t.Errorf("the first request: got %v, want a charge", err)
	}
}

func TestCharge_whoHangsUpIsChargedAllTheSame(t *testing.T) {
	b := start(t, bank.Config{Slow: 300 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Charge(ctx, "k", paying("tok_slow"))
	wantUnknown(t, err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := b.must("k", paying("tok_slow")); got.Status != bank.Captured {
		t.Errorf("a repeat got %+v, want the charge", got)
	}
	b.wantSummary(bank.Summary{Charges: 1, Amount: 1500})
}

func TestFaults_repliesAreLostAndDelaysAreWaited(t *testing.T) {
	b := start(t, bank.Config{Faults: bank.Faults{LoseReplies: 1}})
	_, err := b.Charge(t.Context(), "k", paying("tok_ok"))
	wantLost(t, err)
	b.must("k", paying("tok_ok"))
	if err := b.SetFaults(t.Context(), bank.Faults{LoseReplies: 2}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a repeat's are lost, too
		_, err = b.Charge(t.Context(), "k", paying("tok_ok"))
		wantLost(t, err)
	}
	b.must("k", paying("tok_ok"))
	b.wantSummary(bank.Summary{Charges: 1, Amount: 1500})

	if err := b.SetFaults(t.Context(), bank.Faults{DelayBefore: 30, DelayAfter: 40}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	b.must("delayed", paying("tok_ok"))
	if took := time.Since(begun); took < 70*time.Millisecond {
		t.Errorf("a delayed charge took %v, want at least 70ms", took)
	}
	if err := b.SetFaults(t.Context(), bank.Faults{DelayAfter: -1}); err == nil || !strings.Contains(err.Error(), "delay_after_ms") {
		t.Errorf("a negative delay: got %v, want a refusal that names it", err)
	}
}

// wantLost checks that the bank has hung up without a reply.
func wantLost(t *testing.T, err error) {
	t.Helper()
	wantUnknown(t, err)
	if !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

// wantUnknown checks that an error leaves it open whether money has moved.
func wantUnknown(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, bank.ErrRefused) {
		t.Errorf("got %v, want an error that is no proof that nothing was charged", err)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never came that %s", what)
		}
	}
}
