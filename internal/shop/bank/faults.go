package bank

import (
	"fmt"
	"net/http"
	"time"
)

// MaxDelay bounds every delay: longer than any client of a demo waits.
const MaxDelay = 30 * time.Second

// Faults are the troubles that a bank makes with every card. The zero value is
// none.
type Faults struct {
	// DelayBefore is waited before a new charge or refund is committed, DelayAfter after
	// it and before the reply; in milliseconds, at most MaxDelay.
	DelayBefore int64 `json:"delay_before_ms"`
	DelayAfter  int64 `json:"delay_after_ms"`
	// LoseReplies is how many of the next replies that tell of a charge or a refund, a
	// new one or one on record, are lost: the bank hangs up instead.
	LoseReplies int64 `json:"lose_replies"`
}

func (f Faults) before() time.Duration { return time.Duration(f.DelayBefore) * time.Millisecond }
func (f Faults) after() time.Duration  { return time.Duration(f.DelayAfter) * time.Millisecond }

func (f Faults) check() error {
	most := MaxDelay.Milliseconds()
	switch {
	case f.DelayBefore < 0 || f.DelayBefore > most:
		return fmt.Errorf("delay_before_ms must be from 0 to %d", most)
	case f.DelayAfter < 0 || f.DelayAfter > most:
		return fmt.Errorf("delay_after_ms must be from 0 to %d", most)
	case f.LoseReplies < 0:
		return fmt.Errorf("lose_replies must not be negative")
	}
	return nil
}

func (b *bank) currentFaults() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults
}

// losesReply takes one of the replies that are to be lost, if there is one.
func (b *bank) losesReply() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.faults.LoseReplies == 0 {
		return false
	}
	b.faults.LoseReplies--
	return true
}

// sleep waits, but not when the bank closes.
func (b *bank) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.closing:
	}
}

// postFaults is POST /faults: these instead of those so far. A member that is
// left out is none. Start has seen to it that only this machine can reach it.
func (b *bank) postFaults(w http.ResponseWriter, r *http.Request) {
	var f Faults
	if refusal := readBody(w, r, &f); refusal != nil {
		refusal.answer(w)
		return
	}
	if err := f.check(); err != nil {
		refuse("faults-invalid", err.Error()).answer(w)
		return
	}
	b.mu.Lock()
	b.faults = f
	b.mu.Unlock()
	writeJSON(w, http.StatusOK, f)
}
