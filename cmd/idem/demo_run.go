package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/storm"
)

// demo runs the whole demo until its storm is over or ctx ends, and stops all
// that it started.
func (e env) demo(ctx context.Context, o demoOptions) (err error) {
	terminal := isTerminal(e.stderr)
	e.stderr = &lineWriter{w: e.stderr}
	ln, err := demoListen(ctx, o)
	if err != nil {
		return err
	}
	defer ln.Close()
	database, err := openDemoDatabase(ctx, o, e.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.close()) }()

	bank, err := openDemoBank(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bank.close()) }()

	logger := slog.New(slog.NewTextHandler(e.stderr, nil))
	calm := make(chan struct{}) // closed when the storm is over: until then its own shops work
	counted, err := newDemoMetrics(database.pool)
	if err != nil {
		return err
	}
	s, err := shop.New(ctx, database.pool, shop.Config{Profile: idemhttp.Profile(o.profile), Bank: bank.URL, Lease: demoLease,
		WorkFrom: calm, Faults: o.faults, Logger: logger,
		Observe: counted.Observe, Metrics: counted.handler})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- s.Run(serving, ln) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	fmt.Fprintf(e.stderr, "the shop listens on %s\n", demoURL(ln))
	proof, err := e.storm(ctx, s, database, bank, counted, o, terminal)
	if err != nil {
		return err
	}
	close(calm)
	if err := e.writeDemo(demoPlaces{demoURL(ln), database, bank}, proof, o); err != nil {
		return err
	}
	if !o.exit {
		fmt.Fprintln(e.stderr, "Ctrl-C stops it")
		select {
		case <-ctx.Done():
			fmt.Fprintln(e.stderr, "stopping; requests that run are finished first")
		case err := <-served:
			served <- nil // for the one who waits for the end
			return err
		}
	}
	if proof != nil && !proof.Holds() {
		return exitf(exitCheck, "the proof fails: %s", strings.Join(proof.Failures(), "; "))
	}
	return nil
}

// storm drives the storm, if one was asked for, and tells how far it is. It has
// shops of its own on the same database, since it kills them; the bank is killed in its
// place.
func (e env) storm(ctx context.Context, s *shop.Shop, d *demoDatabase, b *demoBank, m *demoMetrics, o demoOptions, terminal bool) (*storm.Report, error) {
	if o.intents == 0 {
		return nil, nil
	}
	self, err := demoSelf()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(e.stderr, "storm: %d intents, seed %d\n", o.intents, o.seed)
	progress := newDemoProgress(e.stderr, terminal)
	defer progress.end()
	return storm.Run(ctx, storm.Config{DB: s.DB(), DatabaseURL: d.url, Bank: b.Bank, Command: demoChild(self),
		Profile: idemhttp.Profile(o.profile), Intents: o.intents, Seed: o.seed, Observe: m.Observe, Progress: progress.tell})
}

// lineWriter lets several goroutines write whole lines to one stream.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
