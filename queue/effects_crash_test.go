package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The points of a task that charges, in their order.
const (
	pointIntended = "intended" // the intention is committed, and the bank not called
	pointCalled   = "called"   // the bank has been sent the call
	pointCharged  = "charged"  // the bank has answered, and nothing is recorded
	pointRecorded = "recorded" // the result is recorded
	pointPosted   = "posted"   // the final transaction is open, with what it writes
)

var effectPoints = []string{pointIntended, pointCalled, pointCharged, pointRecorded, pointPosted}

// money is a task that moves money once: a charge, or a refund.
type money struct {
	Reference string `json:"reference"`
	Card      string `json:"card"`
	Amount    int64  `json:"amount"` // what is posted, below zero for a refund
}

func (m money) keyless() bool { return strings.Contains(m.Card, "keyless") }

func (m money) charge() bank.Charge {
	return bank.Charge{Reference: m.Reference, Amount: max(m.Amount, -m.Amount), Card: m.Card}
}

// moneyKind are tasks of a queue of their own, which a dead worker keeps for a short time.
func moneyKind(queueName string) *queue.Kind[money] {
	return queue.Define[money]("money."+queueName, queue.Options{Queue: queueName, Lease: 2 * time.Second, MaxAttempts: 8,
		Backoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond, Timeout: 50 * time.Second})
}

// mover handles the tasks: it calls the bank and posts, in books that sum to zero.
type mover struct {
	bank string                      // its URL
	at   func(point string, m money) // told where the handler is
}

func (v mover) move(ctx context.Context, m money) error {
	e := idem.Effect{Scope: "shop", Key: m.Reference, Input: m.charge(), Timeout: 20 * time.Second}
	if !m.keyless() {
		e.Provider = idem.Keyed(time.Hour)
	}
	receipt, err := idem.Call(ctx, e, func(ctx context.Context, key string) (bank.Receipt, error) {
		v.at(pointIntended, m)
		receipt, err := v.call(ctx, key, m)
		if err == nil {
			v.at(pointCharged, m)
		}
		return receipt, err
	})
	if err != nil {
		return err
	}
	v.at(pointRecorded, m)
	posting := idem.Effect{Scope: "shop", Key: "post:" + m.Reference}
	_, _, err = idem.Apply(ctx, idem.Tx(ctx), posting, func(ctx context.Context, tx pgx.Tx) (string, error) {
		_, err := tx.Exec(ctx, "insert into postings (reference, account, amount) values ($1, 'cash', $2), ($1, 'sales', - $2::bigint)", m.Reference, m.Amount)
		return receipt.ID, err
	})
	if err == nil {
		v.at(pointPosted, m)
	}
	return err
}

// call calls the bank, and is at a point once it has been sent the call.
func (v mover) call(ctx context.Context, key string, m money) (receipt bank.Receipt, err error) {
	sent, answered := make(chan struct{}), make(chan struct{})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
	go func() {
		defer close(answered)
		client := bank.Client{URL: v.bank}
		receipt, err = client.Charge(ctx, key, m.charge())
	}()
	select {
	case <-sent:
		v.at(pointCalled, m)
	case <-answered:
	}
	<-answered
	return receipt, err
}

// effectOrders are what a worker process is told.
type effectOrders struct{ Database, Bank, Queue, Point string }

const effectOrdersVariable = "IDEM_TEST_QUEUE_EFFECTS"

func init() { children["effects"] = effectChild }

// effectChild is a worker that stops at its point, in each task once, says "reached", and
// goes no further until its parent says go. It says "ended RESULT" of each attempt, and
// ends with its stdin.
func effectChild() int {
	var o effectOrders
	err := json.Unmarshal([]byte(os.Getenv(effectOrdersVariable)), &o)
	if err == nil {
		err = o.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o effectOrders) work() error {
	pool, err := pgxpool.New(context.Background(), o.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := idem.Open(context.Background(), pool, idem.Config{Observe: func(_ context.Context, e idem.Event) {
		if e.Kind == idem.EventTask {
			fmt.Println("ended", e.TaskResult)
		}
	}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	goOn := make(chan struct{})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		in.Scan()
		close(goOn)
		for in.Scan() { // until the parent is gone
		}
		stop()
	}()
	var stopped sync.Map
	v := mover{bank: o.Bank, at: func(point string, m money) {
		if point != o.Point {
			return
		}
		if _, before := stopped.LoadOrStore(m.Reference, true); !before {
			fmt.Println("reached")
			<-goOn
		}
	}}
	w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond, PollOnly: true, Grace: time.Second})
	moneyKind(o.Queue).HandleLeased(w, v.move)
	return w.Run(ctx)
}

// effectCrash is what all cells of the test share.
type effectCrash struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
	bank *effectBank
}

// E6, E7, E9: a worker that is killed, or frozen beyond its lease, at each point of three
// tasks: a charge and a refund at a bank that honours keys, and a charge at one that does
// not. Another worker goes on. What honours keys has happened once, is posted once, and
// its task is done; of the other, the call is never made again.
func TestE6_E7_E9_aWorkerThatIsKilledOrFrozenAtEachPoint(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 30
	c := &effectCrash{t: t, url: config.ConnString(), pool: pgtest.PoolWith(t, config), bank: startEffectBank(t)}
	if _, err := c.pool.Exec(t.Context(), "create table postings (reference text, account text, amount bigint)"); err != nil {
		t.Fatal(err)
	}
	turns := make(chan struct{}, 5)
	var all sync.WaitGroup
	for _, fault := range []os.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, point := range effectPoints {
			if fault == syscall.SIGSTOP && point == pointPosted {
				continue // it holds its tasks until the server ends its transaction: see T12
			}
			turns <- struct{}{}
			all.Go(func() {
				defer func() { <-turns }()
				c.cell(fault, point)
			})
		}
	}
	all.Wait()
	var sum, rows int
	err = c.pool.QueryRow(t.Context(), "select coalesce(sum(amount), 0), count(*) from postings").Scan(&sum, &rows)
	if err != nil || sum != 0 || rows == 0 {
		t.Errorf("the books sum to %d in %d rows (%v)", sum, rows, err)
	}
}

// cell is one fault at one point.
func (c *effectCrash) cell(fault os.Signal, point string) {
	name := map[os.Signal]string{syscall.SIGKILL: "killed-", syscall.SIGSTOP: "frozen-"}[fault] + point
	k := moneyKind(name)
	tasks := []money{{"charge:" + name, "tok_ok", 1500}, {"refund:" + name, "tok_ok", -1500}, {"keyless:" + name, "tok_keyless", 1500}}
	ids := make([]int64, len(tasks))
	for i, m := range tasks {
		e, err := k.Enqueue(context.Background(), c.pool, m.Reference, m)
		if err != nil {
			c.t.Error(err)
			return
		}
		ids[i] = e.ID
	}
	child, err := startEffectChild(effectOrders{c.url, c.bank.URL, name, point})
	if err != nil {
		c.t.Error(name, err)
		return
	}
	defer child.kill()
	if err := child.await("reached", len(tasks)); err != nil {
		c.t.Error(name, err)
		return
	}
	if point == pointCalled { // it has charged, and the worker does not know
		for _, m := range tasks {
			if n, err := c.captured(m, point); err != nil || n != 1 {
				c.t.Errorf("%s: the bank has %d of %s (%v)", name, n, m.Reference, err)
			}
		}
	}
	_ = child.cmd.Process.Signal(fault)
	if fault == syscall.SIGKILL {
		child.kill()
	}
	r := effectRigOn(c.t, c.pool)
	stop := r.survive(k, mover{bank: c.bank.URL, at: func(string, money) {}})
	defer stop()
	var ended [3]string
	for i := range tasks {
		if ended[i], err = c.finished(ids[i]); err != nil {
			c.t.Error(name, err)
			return
		}
	}
	if fault == syscall.SIGSTOP {
		_, _ = io.WriteString(child.stdin, "go\n")
		_ = child.cmd.Process.Signal(syscall.SIGCONT)
		if err := child.await("ended lease_lost", len(tasks)); err != nil {
			c.t.Error(name, err)
		}
	}
	for i, m := range tasks {
		if now, err := c.finished(ids[i]); err != nil || now != ended[i] {
			c.t.Errorf("%s: task %s was %s and is %s (%v)", name, m.Reference, ended[i], now, err)
		}
		c.right(name, point, m, ended[i])
	}
}

// right fails unless a task's money is where it has to be.
func (c *effectCrash) right(name, point string, m money, ended string) {
	open := point == pointIntended || point == pointCalled || point == pointCharged
	want, effect, postings := "done", "applied", 2
	if m.keyless() && open {
		want, effect, postings = "failed", "unknown", 0
	}
	var got string
	var posted int
	err := c.pool.QueryRow(context.Background(), "select status, (select count(*) from postings where reference = $1) from idem.applied_effects where effect_key = $1",
		m.Reference).Scan(&got, &posted)
	if err != nil || ended != want || got != effect || posted != postings {
		c.t.Errorf("%s: task %s has ended %s, its effect is %s, posted in %d rows; want %s, %s, %d (%v)", name, m.Reference, ended, got, posted, want, effect, postings, err)
	}
	captured, err := c.captured(m, point)
	if err != nil || captured > 1 || captured == 0 && !(m.keyless() && point == pointIntended) {
		c.t.Errorf("%s: the bank has %d of %s (%v)", name, captured, m.Reference, err)
	}
}

// captured is how often the bank has moved a task's money; it may be about to, since it was
// called.
func (c *effectCrash) captured(m money, point string) (n int, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		receipts, err := c.bank.client.Find(context.Background(), m.Reference)
		if err != nil || len(receipts) > 0 || point == pointIntended || time.Now().After(deadline) {
			return len(receipts), err
		}
	}
}

// finished waits until a task has ended, and says how.
func (c *effectCrash) finished(id int64) (how string, err error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var over bool
		err := c.pool.QueryRow(context.Background(), "select status, finished_at is not null from idem.tasks where id = $1", id).Scan(&how, &over)
		switch {
		case err != nil || over:
			return how, err
		case time.Now().After(deadline):
			return how, fmt.Errorf("task %d is still %s", id, how)
		}
	}
}

// survive runs a worker until stop is called.
func (r *effectRig) survive(k *queue.Kind[money], v mover) (stop func()) {
	w := queue.NewWorker(r.db, queue.Config{Poll: 50 * time.Millisecond, PollOnly: true, Grace: 5 * time.Second})
	k.HandleLeased(w, v.move)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("the worker ended: %v", err)
		}
	}
}

// effectProcess is a worker in a process of its own.
type effectProcess struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	kill  func()
}

func startEffectChild(o effectOrders) (*effectProcess, error) {
	orders, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // it is killed then
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=effects", effectOrdersVariable+"="+string(orders))
	cmd.Stderr = os.Stderr
	p := &effectProcess{cmd: cmd}
	p.kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it reports the kill
		cancel()
	})
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		cancel()
		return nil, err
	}
	p.stdin, p.lines = stdin, bufio.NewScanner(stdout)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// await reads until the process has said something so often.
func (p *effectProcess) await(says string, times int) error {
	for n := 0; n < times; {
		if !p.lines.Scan() {
			return fmt.Errorf("the worker process ended without saying %q %d times", says, times)
		}
		if p.lines.Text() == says {
			n++
		}
	}
	return nil
}

// E6, E7: the connections of a worker are cut at each point, and it lives: it goes on
// itself, once it is connected again.
func TestE6_E7_aWorkerWhoseConnectionsAreCutAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range effectPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			url := pgtest.NewURL(t)
			proxy := newEffectProxy(t, pgtest.Direct(t, url))
			c := &effectCrash{t: t, pool: pgtest.Pool(t, url), bank: startEffectBank(t)}
			r := effectRigOn(t, pgtest.Pool(t, proxy.URL()))
			if _, err := c.pool.Exec(t.Context(), "create table postings (reference text, account text, amount bigint)"); err != nil {
				t.Fatal(err)
			}
			k := moneyKind("cut")
			var once sync.Once
			stop := r.survive(k, mover{bank: c.bank.URL, at: func(at string, _ money) {
				if at == point {
					once.Do(proxy.CutAll)
				}
			}})
			defer stop()
			for _, card := range []string{"tok_ok", "tok_keyless"} {
				once = sync.Once{}
				m := money{"charge:" + card, card, 1500}
				e, err := k.Enqueue(t.Context(), c.pool, m.Reference, m)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.finished(e.ID); err != nil || got != "done" {
					t.Errorf("%s has ended %s (%v)", card, got, err)
				}
				var rows int
				if err := c.pool.QueryRow(t.Context(), "select count(*) from postings where reference = $1", m.Reference).Scan(&rows); err != nil || rows != 2 {
					t.Errorf("%s is posted in %d rows (%v)", card, rows, err)
				}
				if n, err := c.captured(m, point); err != nil || n != 1 {
					t.Errorf("the bank has %d charges of %s (%v)", n, card, err)
				}
			}
		})
	}
}
