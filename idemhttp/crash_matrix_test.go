package idemhttp_test

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	crashTimes = flag.Int("crash-times", 1, "how often each cell of the crash matrix is tried")
	crashCells = flag.String("crash-cells", "", `a regular expression of the cells that are tried, such as "commit-sent × SIGKILL"; empty: all`)
)

// crashWidth is how many processes are crashed at a time: most of their time they
// wait for a lease to be over.
const crashWidth = 12

// crashLineup is who sends what to the process that is crashed. Each of them is in
// every cell, at the same time, with a server of its own in that process.
type crashLineup struct {
	name    string
	clients int
	keys    int // that the clients have, for one order
	card    string
}

var crashLineups = []crashLineup{
	{"alone", 1, 1, keyedCard},
	{"eight-duplicates", 8, 1, keyedCard},
	{"two-keys", 2, 2, keyedCard},
	{"keyless", 1, 1, keylessCard},
}

// crashFault is what is done to a process that has stopped at a step.
type crashFault struct {
	name   string
	strike func(*crashGroup)
}

// crashFaults begins with those that take longest.
var crashFaults = []crashFault{
	{sigstop, (*crashGroup).freeze},
	{sigkill, (*crashGroup).murder},
	{"connection cut", (*crashGroup).cut},
	{clientsTimeout, (*crashGroup).desert},
	{"bank black-holed", (*crashGroup).swallow},
}

const (
	sigstop        = "SIGSTOP"
	sigkill        = "SIGKILL"
	clientsTimeout = "client's timeout"
)

// TestE6_E7_E11_crashMatrix crashes a process that takes payments at every step of a
// request on a lease, in every way, and has its clients repeat at another process
// until they have an answer. Then the bank has charged once, one posting is there,
// and there is one answer; with a bank that honours no key it may be that the outcome
// is unknown instead, and then nobody has charged a second time.
func TestE6_E7_E11_crashMatrix(t *testing.T) {
	t.Parallel()
	m := newCrashMatrix(t)
	var all sync.WaitGroup
	turns := make(chan struct{}, crashWidth)
	for round := range *crashTimes {
		for _, fault := range crashFaults {
			for _, step := range m.steps(fault) {
				turns <- struct{}{}
				g := m.newGroup(step, fault, round)
				all.Go(func() {
					defer func() { <-turns }()
					g.try()
				})
			}
		}
	}
	all.Wait()
	m.doubled()
	m.renewed()
	m.unvisited()
	m.print()
}

// crashMatrix is what all cells share: the database, the bank, and the process that
// the clients turn to when theirs has crashed.
type crashMatrix struct {
	t        *testing.T
	url      string
	survivor *rig
	bank     *crashBank
	wanted   *regexp.Regexp

	mu    sync.Mutex
	table map[[3]string][]string // by line-up, step and fault: what was seen there
}

func newCrashMatrix(t *testing.T) *crashMatrix {
	t.Helper()
	m := &crashMatrix{t: t, url: pgtest.NewURL(t), table: map[[3]string][]string{}}
	var err error
	if m.wanted, err = regexp.Compile(*crashCells); err != nil {
		t.Fatal(err)
	}
	config, err := pgxpool.ParseConfig(m.url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 30
	m.survivor = rigOn(t, pgtest.PoolWith(t, config))
	_, err = m.survivor.pool.Exec(t.Context(), "create table crash_postings (order_name text not null, amount bigint not null)")
	if err != nil {
		t.Fatal(err)
	}
	c := cashier{bank: func(p payment) string { return "http://" + p.Bank }, at: func(string) {}}
	// It tells early that a key is in flight, so that the clients see it.
	m.survivor.handle("/payments", c.route(400*time.Millisecond), c.ServeHTTP)
	m.survivor.serve()
	m.bank = startCrashBank(t)
	return m
}

// steps are those that are tried with a fault: all of them, unless a flag says less.
// What is short is to kill.
func (m *crashMatrix) steps(f crashFault) (steps []crashStep) {
	for _, s := range crashSteps {
		if m.wanted.MatchString(cellName(s, f)) && (f.name == sigkill || !testing.Short()) {
			steps = append(steps, s)
		}
	}
	return steps
}

func cellName(s crashStep, f crashFault) string { return s.name + " × " + f.name }

// note takes in what a cell was like.
func (m *crashMatrix) note(lineup, step, fault, seen string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := [3]string{lineup, step, fault}
	if !slices.Contains(m.table[at], seen) {
		m.table[at] = append(m.table[at], seen)
	}
}

// unvisited fails the test for every cell in which nothing was reached.
func (m *crashMatrix) unvisited() {
	for _, l := range crashLineups {
		for _, f := range crashFaults {
			for _, step := range m.steps(f) {
				if len(m.table[[3]string{l.name, step.name, f.name}]) == 0 {
					m.t.Errorf("%s: %s: not visited", cellName(step, f), l.name)
				}
			}
		}
	}
}

// doubled fails the test if the bank has charged twice for anything, in whatever cell.
func (m *crashMatrix) doubled() {
	summary, err := m.bank.client.Summary(m.t.Context())
	if err != nil || summary.Doubled != 0 || summary.DoubledKeys != 0 {
		m.t.Errorf("the bank's log says %+v, %v", summary, err)
	}
}

// renewed fails the test if every owner that lived on has lost its lease while its
// client was away for longer than one: then it was not renewed. With a bank that
// honours no key, that shows.
func (m *crashMatrix) renewed() {
	kept, tried := 0, 0
	for _, s := range crashSteps {
		for _, seen := range m.table[[3]string{"keyless", s.name, clientsTimeout}] {
			if s.true.effect == "started" {
				tried++
				kept += strings.Count(seen, "→201")
			}
		}
	}
	if tried > 1 && kept == 0 {
		m.t.Errorf("in all of %d cells the owner has lost its lease: it was not renewed", tried)
	}
}

func (m *crashMatrix) print() {
	var b strings.Builder
	b.WriteString("\nWhat the first client was told, and what its repeats were in the end / charges / postings:\n")
	for _, l := range crashLineups {
		fmt.Fprintf(&b, "\n%s (%d clients, %d keys, %s)\n", l.name, l.clients, l.keys, l.card)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "step")
		for _, f := range crashFaults {
			fmt.Fprint(w, "\t", f.name)
		}
		fmt.Fprintln(w)
		for i, s := range crashSteps {
			fmt.Fprintf(w, "%d %s", i+1, s.name)
			for _, f := range crashFaults {
				fmt.Fprint(w, "\t", cmp.Or(strings.Join(m.table[[3]string{l.name, s.name, f.name}], " | "), "-"))
			}
			fmt.Fprintln(w)
		}
		_ = w.Flush() // into memory
	}
	m.t.Log(b.String())
	m.t.Logf("outcomes at the process that the clients turned to: %v", m.survivor.outcomes())
}

// crashHTTP is a client whose every request has a connection of its own.
func crashHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
