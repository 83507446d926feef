package idemhttp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// cell is one fault at one message: a guard of its own behind a proxy of its own,
// with one warm connection.
type cell struct {
	*matrix
	step    faultproxy.Step
	fault   int
	name    string
	proxy   *faultproxy.Postgres
	rig     *rig
	runs    atomic.Int64
	sending sending
}

// newCell prepares a cell, up to the request that meets the fault.
func (m *matrix) newCell(route idemhttp.Route, step faultproxy.Step, fault int) *cell {
	m.t.Helper()
	m.cells++
	proxy, err := faultproxy.NewPostgres(m.url)
	if err != nil {
		m.t.Fatal(err)
	}
	config, err := pgxpool.ParseConfig(proxy.URL())
	if err != nil {
		m.t.Fatal(err)
	}
	// A ping would be one more message.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.MaxConns = 4
	c := &cell{matrix: m, step: step, fault: fault, proxy: proxy, rig: rigOn(m.t, pgtest.PoolWith(m.t, config)),
		name:    fmt.Sprintf("%s at %s", networkFaults[fault].name, step),
		sending: post("/orders", fmt.Sprint("k", m.cells), fmt.Sprintf(`{"customer_id":%d,"amount":1}`, m.cells))}
	c.rig.handle("/orders", route, createOrder(&c.runs))
	c.rig.serve()
	c.rig.want(c.rig.send(post("/orders", fmt.Sprint("warm", m.cells), body)), 201, "")
	c.runs.Store(0)
	return c
}

func (c *cell) close() {
	c.rig.server.Close()
	c.rig.pool.Close()
	if err := c.proxy.Close(); err != nil {
		c.t.Errorf("%s: the proxy: %v", c.name, err)
	}
}

// try sends the request into the fault and returns what the table says of it.
func (c *cell) try() string {
	fault := networkFaults[c.fault]
	if fault.release == whileAsking || fault.release == tooLate {
		// The driver's cancel request would end what is only late.
		c.proxy.Add(faultproxy.Rule{When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1, Do: faultproxy.Cut()})
	}
	connections := c.rig.pool.Stat().NewConnsCount()
	armed := c.proxy.Add(faultproxy.Rule{Name: c.name, When: c.reaches(), Do: fault.do})
	answer := c.rig.begin(c.sending)
	select {
	case <-armed.Reached():
	case <-time.After(15 * time.Second):
		c.t.Errorf("%s: the message never came", c.name)
	}
	switch fault.release {
	case atOnce:
		select {
		case got := <-answer:
			c.t.Errorf("%s: answered %d while the message was held", c.name, got.status)
			return "early"
		default:
		}
		armed.Release()
	case whileAsking:
		c.poll(func() bool { return c.rig.pool.Stat().NewConnsCount() > connections })
		armed.Release()
	}
	got := <-answer
	runs, committed := c.runs.Load(), c.committed()
	if got.err != nil || runs > 1 {
		c.t.Errorf("%s: answer %d, %v; the handler ran %d times in one request", c.name, got.status, got.err, runs)
	}
	c.judge(got, committed)
	armed.Release()
	return fmt.Sprint(got.status, " ", c.settle(got, committed, runs == 1))
}

// reaches matches the cell's step on the warm connection: a lease is renewed on
// another one.
func (c *cell) reaches() func(faultproxy.Message) bool {
	step := c.step.When()
	return func(m faultproxy.Message) bool { return m.Conn == c.step.Conn && step(m) }
}

// judge compares the answer with the truth at its moment.
func (c *cell) judge(got reply, committed bool) {
	switch {
	case got.status == 201 && !committed:
		c.t.Errorf("%s: answered 201, and nothing is committed", c.name)
	case got.status == 201:
	case got.status == 503 && got.problem() == "unavailable" && got.header.Get("Retry-After") != "":
	case got.status == 425 && got.problem() == "in-flight":
	default:
		c.t.Errorf("%s: answered %d %q %s", c.name, got.status, got.problem(), got.body)
	}
	if networkFaults[c.fault].harmless && (got.status != 201 || got.replayed()) {
		c.t.Errorf("%s: answered %d, replayed %v; the fault harms nothing", c.name, got.status, got.replayed())
	}
}

// committed is the truth: whether the order is there, which must be with its key
// or not at all.
func (c *cell) committed() bool {
	var orders, keys int
	err := c.truth.pool.QueryRow(context.Background(), `select
		(select count(*) from orders where customer = substr($1, 2)::bigint and amount = 1),
		(select count(*) from idem.idempotency_keys where key = $1 and state = 'answered' and committed)`, c.sending.key).Scan(&orders, &keys)
	if err != nil || orders > 1 || orders != keys {
		c.t.Errorf("%s: %d orders, %d answers, %v", c.name, orders, keys, err)
	}
	return orders > 0
}

// settle repeats the request until its answer is definite, which must be the only
// one that anybody ever gets, and says what came of the first in the end, which has
// run or has not.
func (c *cell) settle(first reply, committed, ran bool) string {
	var last reply
	c.poll(func() bool {
		last = c.rig.send(c.sending)
		return last.status != 425 && last.status != 503
	})
	again := c.rig.send(c.sending)
	if last.status != 201 || again.status != 201 || !again.replayed() || again.body != last.body {
		c.t.Errorf("%s: the retry got %d %q, another %d %q", c.name, last.status, last.body, again.status, again.body)
	}
	if first.status == 201 && last.body != first.body {
		c.t.Errorf("%s: the first got %q, its retry %q", c.name, first.body, last.body)
	}
	if !c.committed() {
		c.t.Errorf("%s: no order in the end", c.name)
	}
	runs := c.runs.Load()
	switch {
	case committed && runs != 1 || runs > 2:
		c.t.Errorf("%s: the handler ran %d times", c.name, runs)
	case committed:
		return "committed"
	case ran && runs == 1:
		return "committed later"
	}
	return "not applied"
}

// poll waits, within a bound, until condition holds, from any goroutine.
func (c *cell) poll(condition func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			c.t.Errorf("%s: it was waited for in vain", c.name)
			return
		}
	}
}
