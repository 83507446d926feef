package idemhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// heldTurns is how often a client that has gone away is told elsewhere that its
	// key is in flight, before its first process goes on: together longer than a lease.
	heldTurns = 3
	// unknownTurns is how often a client asks about an outcome that is unknown, with a
	// bank that honours no key.
	unknownTurns = 3
	// crashPause spaces a client's repeats.
	crashPause = 20 * time.Millisecond
)

// crashCell is one line-up in one group.
type crashCell struct {
	*crashGroup
	lineup  crashLineup
	name    string
	body    string
	payment payment
	clients []*crashClient
	base    string // of the process that is crashed

	reached, arrived chan struct{}
	visited          bool
	held             chan struct{} // closed when a client was told often enough that its key is in flight
	holding          sync.Once

	mu      sync.Mutex
	answers map[string][]string // by key: what was definite, each once
	charges []string            // that they tell of, each once
	first   string              // what the first client was told by the process that is crashed
}

// crashClient is a client with its key.
type crashClient struct {
	*crashCell
	sending sending
	answer  chan reply // of its first request
	leaves  context.CancelFunc
}

func newCrashCell(g *crashGroup, l crashLineup, name string) *crashCell {
	return &crashCell{crashGroup: g, lineup: l, name: name, answers: map[string][]string{},
		reached: make(chan struct{}), arrived: make(chan struct{}), held: make(chan struct{})}
}

func (c *crashCell) errorf(format string, args ...any) {
	c.crashGroup.errorf("%s: %s", c.lineup.name, fmt.Sprintf(format, args...))
}

// begin has the first client send its request.
func (c *crashCell) begin() {
	c.payment = payment{Order: c.name, Card: c.lineup.card, Bank: c.bank.at()}
	body, err := json.Marshal(c.payment)
	if err != nil {
		c.errorf("%v", err)
	}
	c.body = string(body)
	c.send(0)
}

// reach waits until the process has said that it is there, and looks at what is true.
func (c *crashCell) reach() {
	select {
	case <-c.reached:
		c.visited = true
	case <-c.gone:
		c.errorf("the process ended before the step")
		return
	case <-time.After(crashPatience):
		c.errorf("the step was not reached")
		return
	}
	if got := c.truth(c.bank == c.crashMatrix.bank); got != c.step.true {
		c.errorf("at the step it is %v, want %v", got, c.step.true)
	}
}

// crowd has the other clients send theirs, and waits until they are there.
func (c *crashCell) crowd() {
	for i := 1; i < c.lineup.clients; i++ {
		c.send(i)
	}
	select {
	case <-c.arrived:
	case <-c.gone:
	case <-time.After(crashPatience):
		c.errorf("not all clients have arrived")
	}
}

// send has a client send its first request.
func (c *crashCell) send(i int) {
	ctx, leaves := context.WithCancel(context.Background())
	key := fmt.Sprint(c.name, ".", i%c.lineup.keys)
	client := &crashClient{crashCell: c, sending: post("/payments", key, c.body), answer: make(chan reply, 1), leaves: leaves}
	c.clients = append(c.clients, client)
	go func() { client.answer <- transmit(ctx, crashHTTP(), c.base, client.sending) }()
}

// leave has all clients go away.
func (c *crashCell) leave() {
	for _, client := range c.clients {
		client.leaves()
	}
}

// settle has the clients hear what they are answered and repeat until that is
// definite.
func (c *crashCell) settle() {
	c.eachClient(func(client *crashClient) {
		if !client.hears() {
			client.repeats()
		}
	})
}

// settleElsewhere has them repeat while their first request has no answer.
func (c *crashCell) settleElsewhere() { c.eachClient((*crashClient).repeats) }

// hear has them hear what their first request was answered in the end.
func (c *crashCell) hear() { c.eachClient(func(client *crashClient) { client.hears() }) }

func (c *crashCell) eachClient(do func(*crashClient)) {
	var all sync.WaitGroup
	for _, client := range c.clients {
		all.Go(func() { do(client) })
	}
	all.Wait()
	c.hold() // if it was not told so, it has an answer
}

func (c *crashCell) hold() { c.holding.Do(func() { close(c.held) }) }

// isHeld waits until the clients that have gone away were told that their key is in
// flight, or have an answer.
func (c *crashCell) isHeld() { <-c.held }

// hears takes the answer of the first request, and reports whether it is definite.
func (client *crashClient) hears() bool {
	defer client.leaves()
	select {
	case got := <-client.answer:
		client.tell(got, client == client.clients[0])
		return got.status == http.StatusCreated
	case <-time.After(crashPatience):
		client.errorf("%s: no answer to the first request", client.sending.key)
		return false
	}
}

// repeats repeats at the other process until the answer is definite.
func (client *crashClient) repeats() {
	tick := time.NewTicker(crashPause)
	defer tick.Stop()
	unknown, inFlight := 0, 0
	for deadline := time.Now().Add(crashPatience); time.Now().Before(deadline); <-tick.C {
		got := client.survivor.send(client.sending)
		client.tell(got, false)
		switch {
		case got.status == http.StatusCreated:
			return
		case got.problem() == "outcome-unknown":
			if unknown++; client.lineup.card == keylessCard && unknown == unknownTurns {
				return
			}
		case got.problem() == "in-flight":
			if inFlight++; inFlight == heldTurns {
				client.hold()
			}
		}
	}
	client.errorf("%s: no definite answer", client.sending.key)
}

// tell takes in an answer: that to the first request of all, or a later one.
func (client *crashClient) tell(got reply, first bool) {
	c := client.crashCell
	c.mu.Lock()
	defer c.mu.Unlock()
	said := fmt.Sprint(got.status)
	switch {
	case got.err != nil:
		said = "lost"
	case got.status == http.StatusCreated:
		var told paid
		if err := json.Unmarshal([]byte(got.body), &told); err != nil {
			c.errorf("answered 201 %q: %v", got.body, err)
		}
		key := client.sending.key
		c.answers[key] = added(c.answers[key], got.header.Get("Content-Type")+" "+got.body)
		c.charges = added(c.charges, told.ID)
	case got.problem() == "outcome-unknown":
		said = "unknown"
	case got.status == http.StatusTooEarly, got.status == http.StatusServiceUnavailable:
	default:
		c.errorf("answered %d %q %s", got.status, got.problem(), got.body)
	}
	if first {
		c.first = said
	}
}

// judge compares all that was answered with what is true in the end.
func (c *crashCell) judge() {
	if !c.visited {
		return
	}
	c.askAgain()
	end := c.truth(true)
	answered := crashTruth{claim: "answered", effect: "applied", charges: 1, postings: 1}
	said := "201"
	switch {
	case c.oneAnswer() && end == answered:
	case len(c.answers) == 0 && c.mayBeUnknown() && end == crashTruth{claim: "bound", effect: "unknown", charges: min(end.charges, 1)}:
		said = "unknown"
	default:
		c.errorf("the answers are %q, and it is %v", c.answers, end)
		said = "WRONG"
	}
	c.note(c.lineup.name, c.step.name, c.fault.name, fmt.Sprintf("%s→%s/%d/%d", c.first, said, end.charges, end.postings))
}

// mayBeUnknown reports whether it may be that nobody knows what has become of the
// call: the bank honours no key, and there is no result yet. Where the process goes on
// after the fault, that may also come before the intention.
func (c *crashCell) mayBeUnknown() bool {
	if c.lineup.card != keylessCard {
		return false
	}
	if c.fault.name == sigkill || c.fault.name == sigstop {
		return c.step.true.effect == "started"
	}
	return c.step.true.effect != "applied"
}

// askAgain repeats every key once more at both processes, as far as they are there,
// so that a difference shows.
func (c *crashCell) askAgain() {
	bases := []string{c.survivor.server.URL}
	if !c.killed {
		bases = append(bases, c.base)
	}
	definite := len(c.answers) > 0
	for _, client := range c.clients[:min(len(c.clients), c.lineup.keys)] {
		for _, base := range bases {
			got := client.asks(base)
			if definite != (got.status == http.StatusCreated) || definite && !got.replayed() {
				c.errorf("%s: asked again, it was answered %d %q %v %s", client.sending.key, got.status, got.problem(), got.err, got.body)
			}
		}
	}
}

// asks repeats at a process until that is not busy with the key any more: an owner
// that has lost its lease may still be on its way out.
func (client *crashClient) asks(base string) (got reply) {
	tick := time.NewTicker(crashPause)
	defer tick.Stop()
	for deadline := time.Now().Add(crashPatience); time.Now().Before(deadline); <-tick.C {
		got = transmit(context.Background(), crashHTTP(), base, client.sending)
		client.tell(got, false)
		if got.problem() != "in-flight" {
			return got
		}
	}
	return got
}

// oneAnswer reports whether every key has one answer, and all tell of one charge.
func (c *crashCell) oneAnswer() bool {
	for _, answers := range c.answers {
		if len(answers) != 1 {
			return false
		}
	}
	return len(c.answers) == c.lineup.keys && len(c.charges) == 1
}

// added is list with s, which it has once.
func added(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// truth is what is true of the cell's order now. A bank that is frozen cannot be
// asked; it has charged nothing.
func (c *crashCell) truth(askBank bool) (t crashTruth) {
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	defer cancel()
	err := c.survivor.pool.QueryRow(ctx, `select
		coalesce((select case when bound and state = 'claimed' then 'bound' else state end
		          from idem.idempotency_keys where scope = 'guest' and key = $1), ''),
		coalesce((select status from idem.applied_effects where scope = 'shop' and effect_key = $2), ''),
		(select count(*) from crash_postings where order_name = $3)`,
		c.clients[0].sending.key, c.payment.effect().Key, c.payment.Order).Scan(&t.claim, &t.effect, &t.postings)
	if err == nil && askBank {
		t.charges, err = c.bank.charged(ctx, c.payment)
	}
	if err != nil {
		c.errorf("%v", err)
	}
	return t
}
