package idemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/testdb"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// visitLimit is how long a message is waited for after the answer, before
	// which it came in the rehearsal.
	visitLimit = 2 * time.Second
	// repeats is how often a request that has its answer is sent again.
	repeats = 2
)

// life is the handler on a database of its own, from its start to its end. Its
// connections lead through a proxy; the test's own do not.
type life struct {
	kill     Kill
	database *testdb.Database
	direct   *pgxpool.Pool // the test's
	proxy    *faultproxy.Postgres
	outside  *outside // nil: there is none
	client   *client  // of the handler, where there is one in this process
	ending   []func() error
}

// lay makes the database, the proxy before it and the system outside.
func (k Kill) lay(ctx context.Context) (l *life, err error) {
	l = &life{kill: k}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.end())
		}
	}()
	if l.database, err = clone(ctx, k.Server, k.Migrate); err != nil {
		return l, err
	}
	l.finally(l.database.Drop)
	if l.direct, err = testdb.Connect(ctx, l.database.URL()); err != nil {
		return l, err
	}
	l.finally(func() error { return closePool(l.direct) })
	if l.proxy, err = faultproxy.NewPostgres(l.database.URL()); err != nil {
		return l, err
	}
	l.finally(l.proxy.Close)
	return l, l.layOutside(ctx)
}

// layOutside makes the system outside, if there is one.
func (l *life) layOutside(ctx context.Context) error {
	if l.kill.Outside == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	l.finally(func() error { cancel(); return nil })
	handler, err := l.kill.Outside(ctx, l.direct)
	if err != nil {
		return fmt.Errorf("Kill.Outside: %w", err)
	}
	l.outside = openOutside(handler)
	l.finally(l.outside.close)
	return nil
}

// address is where the system outside is; empty if there is none.
func (l *life) address() string {
	if l.outside == nil {
		return ""
	}
	return l.outside.server.URL
}

// begin lays a life out and serves the handler in it.
func (k Kill) begin(ctx context.Context) (*life, error) {
	l, err := k.lay(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.serve(ctx, l.proxy.URL()); err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// serve serves the handler on the database of url.
func (l *life) serve(ctx context.Context, url string) error {
	pool, err := testdb.Connect(ctx, url)
	if err != nil {
		return err
	}
	l.finally(func() error { return closePool(pool) })
	ctx, cancel := context.WithCancel(ctx)
	l.finally(func() error { cancel(); return nil })
	handler, err := l.kill.Handler(withOutside(ctx, l.address()), pool)
	if err != nil {
		return fmt.Errorf("the handler: %w", err)
	}
	// A handler that panics when its statement fails is a handler, too.
	quiet := log.New(io.Discard, "", 0)
	c, end := serve(handler, l.kill.Request, quiet)
	c.between = l.lapse
	l.client = c
	l.finally(func() error { end(); return nil })
	return nil
}

func (l *life) finally(do func() error) { l.ending = append(l.ending, do) }

// end ends everything, last first.
func (l *life) end() error {
	var errs []error
	for i := len(l.ending) - 1; i >= 0; i-- {
		errs = append(errs, l.ending[i]())
	}
	l.ending = nil
	return errors.Join(errs...)
}

// cutAt is one point of KillEverywhere.
func (k Kill) cutAt(ctx context.Context, want outcome, p point) (err error) {
	if k.isTask() {
		return k.cutTaskAt(ctx, want, p)
	}
	l, err := k.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	trap := p.cut(l)
	first, failure := l.client.send(ctx)
	over := make(chan struct{})
	close(over)
	if !visited(trap, over) {
		return fmt.Errorf("%w; the answer was %v", errNotVisited, first)
	}
	var answers []Answer
	if failure == nil && first.definite() {
		answers = append(answers, first)
	}
	return l.verify(ctx, answers, want)
}

var errNotVisited = errors.New("this message did not come again, so that nothing was killed: the request, or the task, must do the same each time")

// visited waits until the fault is done, and reports false if the request is over
// without it.
func visited(t trap, over <-chan struct{}) bool {
	select {
	case <-t.reached:
		return true
	case <-over:
	}
	limit := time.NewTimer(visitLimit)
	defer limit.Stop()
	select {
	case <-t.reached:
		return true
	case <-limit.C:
		return false
	}
}

// verify repeats the request until it is answered and then some more, and looks
// at what has come of it. answers are those that it had before.
func (l *life) verify(ctx context.Context, answers []Answer, want outcome) error {
	for len(answers) <= repeats {
		a, err := l.client.settle(ctx, func(a Answer, err error) bool { return err == nil && a.definite() })
		switch {
		case errors.Is(err, errUnknown) && l.kill.Unknown != nil && len(answers) == 0:
			want.unknown.Add(1)
			return l.checked(ctx, "Kill.Unknown", l.kill.Unknown)
		case errors.Is(err, errUnknown) && len(answers) == 0:
			return fmt.Errorf("%w; if that may be, since the other side honours no keys, say so with Kill.Unknown", err)
		case err != nil:
			return err
		}
		answers = append(answers, a)
	}
	return errors.Join(sameAnswers(answers, want), l.checked(ctx, "the check", l.kill.Check))
}

// sameAnswers wants one answer, which only the first request to be told of it may
// have as the first to be told.
func sameAnswers(answers []Answer, want outcome) error {
	first := answers[0]
	if first.Status != want.status {
		return fmt.Errorf("answered %v, where nothing breaks it is %d", first, want.status)
	}
	for _, a := range answers[1:] {
		if d := first.difference(a); d != "" {
			return fmt.Errorf("a repeat got another answer: %s", d)
		}
		if !a.Replayed() {
			return fmt.Errorf("a repeat of an answered request does not say Idempotent-Replayed: true, so the handler may have run again.%s It got %v", whyFresh(a), a)
		}
	}
	return nil
}

// checked runs a check of the program's and Idem's.
func (l *life) checked(ctx context.Context, name string, check func(context.Context, *pgxpool.Pool) error) error {
	var errs []error
	if err := check(ctx, l.direct); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return errors.Join(append(errs, testdb.Check(ctx, l.direct)...)...)
}
