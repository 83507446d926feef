// Package shop is the demo's shop, which is also what the docs show: orders and
// bookings behind the guard, payments behind it and on a lease, receipts and refunds by
// tasks, and the same orders without any of it for comparison. Its tables are in the schema shop, its SQL in sql/, one
// file per statement.
//
// Amounts are whole numbers in minor units. Whoever sends no Authorization
// header is the principal "guest".
package shop

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how a shop behaves. Its zero value works.
type Config struct {
	// Profile chooses what clients see instead of an answer; empty means
	// idemhttp.Article.
	Profile idemhttp.Profile
	// Wait is how long a duplicate waits for the first request. Zero means 5 s,
	// negative means not at all; at most 5 minutes.
	Wait time.Duration
	// Bank is the bank's URL, such as http://127.0.0.1:8001. Without one nothing can
	// be paid.
	Bank string
	// Lease is how long a payment stays its request's, and a task its worker's, beyond
	// the last sign of life of the shop that works on it. Zero means idemhttp.DefaultLease; from 1 s to 10
	// minutes.
	Lease time.Duration
	// WorkFrom is closed when the shop is to begin with its tasks, which other processes
	// do until then. Nil means at once.
	WorkFrom <-chan struct{}
	// Faults makes the shop obey the headers X-Demo-Delay and X-Demo-Fail,
	// which make trouble on purpose. Without it they are ignored.
	Faults bool
	// Logger gets a line for every request on a guarded route, and what goes
	// wrong. Nil is silent.
	Logger *slog.Logger
	// Observe is told of every event, beside Logger. Nil is silent.
	Observe func(context.Context, idem.Event)
	// Metrics serves GET /metrics. Nil means that there is none.
	Metrics http.Handler
}

// Shop is a running shop: its handles, and nothing that it remembers itself.
// Safe for concurrent use.
type Shop struct {
	db      *idem.DB
	pool    *pgxpool.Pool
	guard   *idemhttp.Guard
	bank    *bank.Client // nil without one
	lease   time.Duration
	faults  bool
	logger  *slog.Logger
	metrics http.Handler // nil: there are none
	wait    time.Duration
	from    <-chan struct{} // nil: at once
	kinds
}

// New opens a shop on a database that idem.Migrate and Migrate have prepared.
// The pool stays the caller's to close, after Run has returned. Errors: those of
// idem.Open, and of a Config that cannot be.
func New(ctx context.Context, pool *pgxpool.Pool, cfg Config) (*Shop, error) {
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	bankClient, err := bankAt(cfg.Bank)
	if err != nil {
		return nil, err
	}
	lease := cmp.Or(cfg.Lease, idemhttp.DefaultLease)
	if lease < time.Second || lease > 10*time.Minute {
		return nil, fmt.Errorf("shop: Config.Lease is %v; it must be from 1s to 10m", cfg.Lease)
	}
	db, err := idem.Open(ctx, pool, idem.Config{Observe: observers(idem.LogEvents(logger), cfg.Observe), Checks: checks()})
	if err != nil {
		return nil, fmt.Errorf("shop: open: %w", err)
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: principal, Profile: cfg.Profile, Wait: cfg.Wait})
	if err != nil {
		return nil, fmt.Errorf("shop: guard: %w", err)
	}
	wait := cfg.Wait
	if wait == 0 {
		wait = idemhttp.DefaultWait
	}
	return &Shop{
		db: db, pool: pool, guard: guard, bank: bankClient, lease: lease,
		faults: cfg.Faults, logger: logger, metrics: cfg.Metrics, wait: max(wait, 0), from: cfg.WorkFrom, kinds: newKinds(lease),
	}, nil
}

// observers tells both of every event; also may be nil.
func observers(log, also func(context.Context, idem.Event)) func(context.Context, idem.Event) {
	if also == nil {
		return log
	}
	return func(ctx context.Context, e idem.Event) {
		also(ctx, e)
		log(ctx, e)
	}
}

// bankAt is the client of the bank at a URL; nil without one.
func bankAt(at string) (*bank.Client, error) {
	if at == "" {
		return nil, nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
		return nil, fmt.Errorf("shop: Config.Bank must be a URL like http://127.0.0.1:8001, without a path")
	}
	return &bank.Client{URL: at}, nil
}

// DB returns the handle that the shop's guard uses, for Check and Sweep. Its Check
// holds the shop's money to its own invariants, too.
func (s *Shop) DB() *idem.DB { return s.db }
