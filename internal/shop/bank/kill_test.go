package bank_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
)

// The bank is killed in the middle of two hundred charges, again and again, and
// all are repeated until each has been answered.
func TestProcess_killedInTheMiddleItHasOneChargePerKey(t *testing.T) {
	const charges, killAfter = 200, 40
	cards := []string{"tok_ok", "tok_declined", "tok_lost_reply", "tok_ok"}
	charge := func(i int) (key string, c bank.Charge) {
		return fmt.Sprint("key-", i), bank.Charge{Reference: fmt.Sprint("charge:payment:", i), Amount: 100, Card: cards[i%len(cards)]}
	}
	cfg := bank.Config{Log: newLog(t)}
	p := process(t, cfg)
	client := bank.Client{URL: p.URL}
	cfg.Listen = p.Addr // the next ones are found where the first one was

	var mu sync.Mutex
	told := map[int]bank.Receipt{}
	// send sends all of them at once and reports how many were answered. Whoever is
	// answered as the killAfter-th calls kill.
	send := func(kill func()) int {
		var all sync.WaitGroup
		var answered atomic.Int32
		for i := range charges {
			all.Go(func() {
				key, c := charge(i)
				receipt, err := client.Charge(t.Context(), key, c)
				if err != nil {
					return
				}
				if answered.Add(1) == killAfter {
					kill()
				}
				mu.Lock()
				defer mu.Unlock()
				if before, ok := told[i]; ok && before != receipt {
					t.Errorf("%s: was told of %+v, and then of %+v", key, before, receipt)
				}
				told[i] = receipt
			})
		}
		all.Wait()
		return int(answered.Load())
	}
	for round := range 3 {
		if n := send(p.Kill); n < killAfter || n == charges {
			t.Fatalf("round %d: %d of %d were answered, want the kill in the middle", round, n, charges)
		}
		key, c := charge(0)
		if _, err := client.Charge(t.Context(), key, c); !errors.Is(err, bank.ErrUnreachable) {
			t.Errorf("a bank that is not there: got %v, want ErrUnreachable", err)
		}
		p = process(t, cfg)
	}
	for range 2 { // the first time, lost replies are still lost
		send(func() {})
	}
	if len(told) != charges {
		t.Errorf("%d charges were answered in the end, want %d", len(told), charges)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	b := start(t, bank.Config{Log: cfg.Log})
	if got := len(lines(t, cfg.Log)); got != charges {
		t.Errorf("the log has %d lines, want %d", got, charges)
	}
	for i, want := range told {
		if got := b.wantFound(want.Reference, 1); len(got) == 1 && got[0] != want {
			t.Errorf("charge %d: on record is %+v, want %+v, which was told", i, got[0], want)
		}
	}
	b.wantSummary(bank.Summary{Charges: 150, Declined: 50, Amount: 15000})
}

func TestProcess_endsWithItsStdin(t *testing.T) {
	p := process(t, bank.Config{Log: newLog(t)})
	if err := p.Stop(); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
}
