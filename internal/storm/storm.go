// Package storm sends hostile clients against two shops on one database and counts
// what comes of it. Every intent is sent several times at once and again later,
// some are altered afterwards, some share a key with a stranger, some clients hang
// up, and bookings race for one slot. Between the client processes and the shop
// processes lies a network that cuts, delays and repeats, and both are killed with
// SIGKILL meanwhile. The same requests go to the endpoint without a guard.
//
// Every order that was made is also paid for: with cards that are slow, are declined,
// lose the bank's reply, or are the kind whose keys it ignores; from two keys at times;
// and at a bank that is killed as well. What becomes unknown is settled in the end by
// what the bank has on record.
//
// Every order has a receipt sent by a task, and some payments are refunded by one, asked
// for from two keys at times. The shops work on the tasks, and take them along when they
// are killed.
//
// It counts from outside, by what clients were told, by the rows in the database and
// by what the bank has charged, and says whether every intent had one outcome, and one
// that its client could learn in the end.
//
// A storm only goes to loopback addresses and is bounded in count and time. All
// that it starts ends with it, however it ends.
package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/shop"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// MaxIntents bounds a storm. Every intent has a customer of its own out of a
	// block of this many.
	MaxIntents = 1 << 20
	// DefaultClients is how many requests are under way at one time.
	DefaultClients = 64
	// DefaultPatience is how long a client sends one request again; longer than
	// any process takes to be restarted.
	DefaultPatience = 20 * time.Second
	// clientProcesses is how many processes the clients are spread over.
	clientProcesses = 4
	// limit bounds a whole storm in time, for a server that answers nothing.
	limit = 30 * time.Minute
)

// The roles of the processes that a storm starts.
const (
	RoleShop   = "shop"   // runs Shop
	RoleClient = "client" // runs Client
)

// Config says how hard a storm blows, and at what. DB, DatabaseURL, Bank, Command and
// Intents are required.
type Config struct {
	// DB is the shops' database, where the rows are counted and the invariants
	// checked.
	DB *idem.DB
	// DatabaseURL is how the shops reach it. It travels on their stdin.
	DatabaseURL string
	// Bank is where the orders are paid. The storm kills it and starts it again; it is
	// the caller's to close.
	Bank *Bank
	// Command makes the command of a process that runs Shop or Client on its
	// stdin and stdout, by role. The storm starts and ends it.
	Command func(role string) *exec.Cmd
	// Profile chooses what clients see instead of an answer; empty means
	// idemhttp.Article.
	Profile idemhttp.Profile
	// Intents is how many orders are meant; from 1 to MaxIntents.
	Intents int
	// Seed decides the plan: how many copies, in which order, who alters and who
	// hangs up, after how many sends which process is killed, and what the network
	// does to its n-th connection and its n-th request. Which of them meet is the
	// machine's affair, and the marks that keep storms on one database apart are
	// always new.
	Seed uint64
	// Clients is how many requests are under way at one time. Zero means 64.
	Clients int
	// Patience is how long a client sends one request again, and how long the storm waits
	// for tasks in the end. Zero means 20 s.
	Patience time.Duration
	// Observe is told of every event of the shops, without keys and scopes, as
	// idem.Config.Observe is; also of those that are killed, up to then. All have been told
	// when Run returns. Nil is silent.
	Observe func(context.Context, idem.Event)
	// Calm leaves out bad weather, kills and clients that hang up, so that what shops tell
	// can be held against what was sent. Such a storm proves little.
	Calm bool
	// Progress is called now and then, by one goroutine at a time. Nil is silent.
	Progress func(Progress)
}

// Progress is how far a storm is.
type Progress struct {
	Done, Planned int // sends
	Kills         int // shops killed so far
	BankKills     int // how often the bank was
	Cuts          int64
}

// Run drives one storm and reports. An error means that the storm could not be
// driven or counted; whether the proof holds is Report.Holds. It has ended all
// that it started when it returns, also when ctx ends first.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	marks, err := freshMarks(ctx, cfg)
	if err != nil {
		return nil, err
	}
	before, err := readBooks(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := newPlan(rand.New(rand.NewPCG(cfg.Seed, 0)), cfg.Intents, marks)
	if cfg.Calm {
		p.calm()
	}
	report, err := blow(ctx, cfg, p, marks)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("storm: interrupted: %w", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	if err := count(ctx, cfg.DB.Pool(), marks, report); err != nil {
		return nil, err
	}
	after, err := readBooks(ctx, cfg)
	if err != nil {
		return nil, err
	}
	report.Payments.Books = after.since(before)
	for v, err := range idem.Check(ctx, cfg.DB) {
		if err != nil {
			return nil, fmt.Errorf("storm: check the invariants: %w", err)
		}
		report.Violations = append(report.Violations, fmt.Sprintf("%s: %s %s: %s", v.Invariant, v.Table, v.Row, v.Detail))
	}
	return report, nil
}

// blow starts the network, the shops and the clients, drives the plan, and ends
// them.
func blow(ctx context.Context, cfg Config, p plan, m marks) (r *Report, err error) {
	o := newOperator(cfg, m)
	network, err := openNetwork(cfg.Seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.close()) }()
	shops, err := openShops(ctx, cfg.Command, shopOrders{DatabaseURL: cfg.DatabaseURL, BankURL: cfg.Bank.URL, Profile: cfg.Profile}, network, cfg.Observe)
	if err != nil {
		return nil, err
	}
	defer shops.close()
	crew := newCrew(clientProcesses, cfg.Command, clientOrders{URL: network.url, Patience: cfg.Patience})
	defer crew.close()
	records := newRecords(p)
	if cfg.Calm {
		network.clear()
	}
	d := &driver{crew: crew, shops: shops, bank: cfg.Bank, network: network, clients: cfg.Clients, calm: cfg.Calm, strikes: p.strikes, progress: cfg.Progress}
	bankKills := cfg.Bank.killed()
	began := time.Now()
	if err := d.blow(ctx, p, records, o); err != nil {
		return nil, err
	}
	clumsy, err := network.blunder(ctx, m, cfg.Patience)
	if err != nil {
		return nil, err
	}
	if err := o.await(ctx, cfg.Patience); err != nil {
		return nil, err
	}
	r = &Report{Seed: cfg.Seed, Seconds: time.Since(began).Seconds(), Network: network.counts(),
		Kills:   Kills{Shops: shops.killed(), Clients: d.killed, Banks: cfg.Bank.killed() - bankKills},
		Guarded: records.guarded.c, Unguarded: records.unguarded.c, Bookings: records.bookings.races(),
		Payments: records.payments.paid(p, o), Refunds: records.refunds.asked(), Clumsy: clumsy}
	// What nobody waits for any more is finished before anything is counted.
	network.gateway.copies.Wait()
	for _, c := range []*Column{&r.Guarded, &r.Unguarded, &r.Bookings.Column, &r.Payments.Column, &r.Refunds.Column} {
		c.Requests, c.Given = network.gateway.at(c.Path), network.gateway.gave(c.Path)
	}
	return r, shops.stop()
}

func (c Config) withDefaults() Config {
	if c.Clients == 0 {
		c.Clients = DefaultClients
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.DB == nil:
		return errors.New("storm: DB is required: the proof is in the database")
	case c.DatabaseURL == "":
		return errors.New("storm: DatabaseURL is required: the shops are processes of their own")
	case c.Bank == nil:
		return errors.New("storm: Bank is required: the orders are paid for")
	case c.Command == nil:
		return errors.New("storm: Command is required: shops and clients are processes of their own")
	case c.Intents < 1 || c.Intents > MaxIntents:
		return fmt.Errorf("storm: Intents is %d; it must be from 1 to %d", c.Intents, MaxIntents)
	case c.Clients < 0 || c.Clients > 1000:
		return fmt.Errorf("storm: Clients is %d; it must be from 0 to 1000", c.Clients)
	case c.Patience < time.Second || c.Patience > 10*time.Minute:
		return fmt.Errorf("storm: Patience is %s; it must be from 1s to 10m", c.Patience)
	}
	return nil
}

// count adds what the database says.
func count(ctx context.Context, pool *pgxpool.Pool, m marks, r *Report) error {
	first, last := m.customers(r.Guarded.Intents)
	var err, failed error
	if r.Guarded.Database, err = shop.TallyOrders(ctx, pool, first, last); err != nil {
		failed = err
	}
	if r.Unguarded.Database, err = shop.TallyUnguardedOrders(ctx, pool, first, last); err != nil {
		failed = errors.Join(failed, err)
	}
	if r.Payments.Database, err = shop.TallyPayments(ctx, pool, first, last); err != nil {
		failed = errors.Join(failed, err)
	}
	if r.Refunds.Database, err = shop.TallyRefunds(ctx, pool, first, last); err != nil {
		failed = errors.Join(failed, err)
	}
	if r.Tasks.Receipts, err = shop.TallyReceipts(ctx, pool, first, last); err != nil {
		failed = errors.Join(failed, err)
	}
	if r.Tasks.Tasks, err = shop.TallyTasks(ctx, pool, first, last); err != nil {
		failed = errors.Join(failed, err)
	}
	unsettled, err := shop.Unsettled(ctx, pool, first, last)
	if r.Payments.Unsettled = len(unsettled); err != nil {
		failed = errors.Join(failed, err)
	}
	from, to := m.slots(r.Bookings.Slots)
	if r.Bookings.Database, err = shop.TallyBookings(ctx, pool, from, to); err != nil {
		failed = errors.Join(failed, err)
	}
	return failed
}
