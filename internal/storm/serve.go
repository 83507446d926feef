package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/shop"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// shopConnections of each of the shops leave most of a small server's to
	// others.
	shopConnections = 8
	// connectLimit bounds one attempt to connect to the database.
	connectLimit = 10 * time.Second
	// lastRequests bounds how long a shop finishes requests when its storm is
	// over or gone.
	lastRequests = 5 * time.Second
)

// shopOrders are the only line that a shop process reads.
type shopOrders struct {
	DatabaseURL string           `json:"database_url"`
	BankURL     string           `json:"bank_url"`
	Profile     idemhttp.Profile `json:"profile"`
}

// shopReady is the first line that it writes; an event is every other.
type shopReady struct {
	Addr string `json:"addr"` // where it listens, host:port
}

// Shop is the life of a shop process: it opens the shop that in tells it to, on a
// loopback port of its own that it writes to out, followed by every event, and serves it
// with run, mostly (*shop.Shop).Run, until in or ctx ends; in ends when the storm's own process is
// gone.
func Shop(ctx context.Context, in io.Reader, out io.Writer, run func(*shop.Shop, context.Context, net.Listener) error) error {
	lines := json.NewDecoder(in)
	var orders shopOrders
	if err := lines.Decode(&orders); err != nil {
		return fmt.Errorf("storm: a shop process has to be told by a storm what to do: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end says all
		cancel()
	}()
	pool, err := shopPool(ctx, orders.DatabaseURL)
	if err != nil {
		return err
	}
	teller := newTeller(out)
	s, err := shop.New(ctx, pool, shop.Config{Profile: orders.Profile, Bank: orders.BankURL, Lease: shopLease, Observe: teller.observe})
	if err != nil {
		return err
	}
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("storm: listen: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- run(s, ctx, ln) }()
	if err := teller.begin(shopReady{ln.Addr().String()}); err != nil {
		return fmt.Errorf("storm: write to the storm: %w", err)
	}
	return lastWord(ctx, served)
}

// lastWord is what a shop ends with. One that cannot finish is left to the end of
// its process, and so is the pool.
func lastWord(ctx context.Context, served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(lastRequests)
	defer timer.Stop()
	select {
	case err := <-served:
		return err
	case <-timer.C:
		return errors.New("storm: a shop's requests were cut off")
	}
}

// shopPool opens the pool. What the driver says of a URL that it cannot read may
// hold parts of a password.
func shopPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("storm: the database's URL cannot be read")
	}
	cfg.MaxConns = shopConnections
	cfg.ConnConfig.ConnectTimeout = connectLimit
	cfg.ConnConfig.RuntimeParams["application_name"] = "idem demo-shop"
	idem.Prepare(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("storm: use the database: %w", err)
	}
	return pool, nil
}
