package bank

import (
	"context"
	"crypto/rand"
	"strings"
)

// outcome is how a request to charge or to refund ends.
type outcome int

const (
	created  outcome = iota // there is a new one
	found                   // it was on record
	lost                    // there is a new one, and nobody is to be told
	mismatch                // another one has the key
	failed                  // nobody knows whether there is one
)

// held is a key that is in use: what it stands for is under way, or on record.
type held struct {
	demand  demand
	done    chan struct{} // closed when the rest is there
	receipt Receipt
	outcome outcome
}

// recorded is a key whose charge or refund is on record.
func recorded(r Receipt) *held {
	h := &held{demand: r.demand(), done: make(chan struct{}), receipt: r, outcome: found}
	close(h.done)
	return h
}

// move charges a card or gives a charge back, or finds what this key has done. It does
// not end with ctx once it has begun: who hangs up while the bank works is charged all
// the same. Only a repeat that waits for the first request does.
func (b *bank) move(ctx context.Context, key string, d demand) (Receipt, outcome) {
	if cards[d.Card].keyless {
		return b.carryOut(key, d)
	}
	h, first := b.hold(key, d)
	switch {
	case first:
		return b.lead(key, h)
	case h.demand != d:
		return Receipt{}, mismatch
	}
	select {
	case <-h.done:
		return h.receipt, h.outcome
	case <-ctx.Done():
		return Receipt{}, failed
	}
}

// hold returns what holds the key, and whether it is this request.
func (b *bank) hold(key string, d demand) (h *held, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h, ok := b.held[key]; ok {
		return h, false
	}
	h = &held{demand: d, done: make(chan struct{}), outcome: failed}
	b.held[key] = h
	return h, true
}

// holds reports whether a key is in use.
func (b *bank) holds(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.held[key]
	return ok
}

// lead does it for all who have sent this key. A key whose charge failed stays
// held: whether it is on record is known when the log has been read again.
func (b *bank) lead(key string, h *held) (Receipt, outcome) {
	defer close(h.done)
	r, how := b.carryOut(key, h.demand)
	if how != failed {
		h.receipt, h.outcome = r, found
	}
	return r, how
}

// carryOut makes a new charge or refund: this is where money moves.
func (b *bank) carryOut(key string, d demand) (Receipt, outcome) {
	card := cards[d.Card]
	r := Receipt{ID: "ch_" + strings.ToLower(rand.Text()), Reference: d.Reference, Of: d.of, Amount: d.Amount, Card: d.Card, Status: d.moved()}
	if d.of != "" {
		r.ID = "re_" + strings.TrimPrefix(r.ID, "ch_")
	}
	if card.declines || card.keeps && d.of != "" {
		r.Status = Declined
	}
	faults := b.currentFaults()
	if card.slow {
		b.sleep(b.slow)
	}
	b.sleep(faults.before())
	first, err := b.commit(newEntry(key, r))
	if err != nil {
		return Receipt{}, failed
	}
	b.sleep(faults.after())
	if card.loses && (first || !card.keyless) {
		return r, lost
	}
	return r, created
}

// commit puts an entry into the log and then into the book. It reports whether it
// is the first of its kind with its reference and card.
func (b *bank) commit(e entry) (first bool, err error) {
	b.commits.Lock()
	defer b.commits.Unlock()
	broken := b.log.err != nil
	if err := b.log.append(e); err != nil {
		if !broken {
			close(b.broken)
		}
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book.add(e), nil
}
