// Package bank is the demo's bank: a process of its own that charges cards, gives
// money back, and remembers every charge and refund in a durable log. It can be killed
// at any time and started again on its log, be made slow, and be made to lose its
// replies.
//
// It knows nothing of Idem and nothing of the shop, as a real bank would not.
// What it offers is what real ones do: a repeat under one Idempotency-Key is the
// charge or the refund that is on record, for the cards that honour keys (see cards).
// It does not look whether a charge has been refunded before: that is the caller's to
// know, and the bank's Summary counts it.
package bank

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// DefaultSlow is how long tok_slow takes unless Config says otherwise.
const DefaultSlow = 2 * time.Second

// Config says how a bank behaves. Only Log is mandatory.
type Config struct {
	// Log is the file of the durable log, which is made if it is not there. One
	// bank at a time may have it.
	Log string
	// Listen is a loopback address, host:port. Empty means a port of its own on
	// 127.0.0.1.
	Listen string
	// Slow is how long tok_slow takes. Zero means DefaultSlow; at most MaxDelay.
	Slow time.Duration
	// Faults are those that it starts with.
	Faults Faults
	// Logger gets what the bank has to say of itself. Nil is silent.
	Logger *slog.Logger
}

// bank is an open log and what is known of it. Safe for concurrent use.
type bank struct {
	slow   time.Duration
	logger *slog.Logger

	closing chan struct{} // closed when delays are to end
	broken  chan struct{} // closed when the log cannot be written to any more

	commits sync.Mutex // held while an entry goes to the log, so that the book has the log's order
	log     *durableLog

	mu     sync.Mutex // for what follows
	book   book
	held   map[string]*held // by key, of the cards that honour keys
	faults Faults
}

// open reads the log back.
func open(cfg Config) (*bank, error) {
	if cfg.Slow < 0 || cfg.Slow > MaxDelay {
		return nil, fmt.Errorf("bank: slow is %v; it must be from 0s to %v", cfg.Slow, MaxDelay)
	}
	if cfg.Slow == 0 {
		cfg.Slow = DefaultSlow
	}
	if err := cfg.Faults.check(); err != nil {
		return nil, fmt.Errorf("bank: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	log, entries, err := openLog(cfg.Log, cfg.Logger)
	if err != nil {
		return nil, err
	}
	b := &bank{
		slow: cfg.Slow, logger: cfg.Logger, closing: make(chan struct{}), broken: make(chan struct{}),
		log: log, book: newBook(), held: map[string]*held{}, faults: cfg.Faults,
	}
	for i, e := range entries {
		if err := b.remember(e); err != nil {
			return nil, errors.Join(fmt.Errorf("bank: %s, line %d: %w", cfg.Log, i+1, err), log.close())
		}
	}
	return b, nil
}

// remember takes an entry of the log, read back, into the bank's memory.
func (b *bank) remember(e entry) error {
	r := e.receipt()
	if e.Kind == kindRefund {
		if _, err := b.book.refundable(r.refund()); err != nil {
			return err
		}
	}
	if e.Key != "" && !cards[r.Card].keyless {
		if _, twice := b.held[e.Key]; twice {
			return fmt.Errorf("the key %q has a charge on an earlier line", e.Key)
		}
		b.held[e.Key] = recorded(r)
	}
	b.book.add(e)
	return nil
}
