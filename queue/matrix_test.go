package queue_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

var matrixCells = flag.String("matrix-cells", "", `a regular expression of the cells that are tried, such as "committed × SIGKILL"; empty: all`)

// matrixWidth is how many processes are struck at a time: most of their time they wait for
// a lease to be over.
const matrixWidth = 8

// matrixRounds is how often a cell is tried in which limits of time were over.
const matrixRounds = 3

// matrix is what all cells share.
type matrix struct {
	t    *testing.T
	url  string
	bank string
	pool *pgxpool.Pool
	db   *idem.DB

	mu    sync.Mutex
	table map[[3]string]string // by way, step and fault: what was seen there
	again []string             // the rounds after which a cell was tried again, and why
}

// TestT11_T12_T26_E6_crashMatrix strikes a worker at every step of a task, in every way,
// and has another worker finish. Then the task is done, its row is written and the bank has
// charged once, whatever the first worker makes of it when it goes on; and a task that
// waited beside it has used one attempt.
func TestT11_T12_T26_E6_crashMatrix(t *testing.T) {
	if orders := os.Getenv(matrixVariable); orders != "" {
		os.Exit(serveMatrix(orders))
	}
	t.Parallel()
	m := newMatrix(t)
	var all sync.WaitGroup
	turns := make(chan struct{}, matrixWidth)
	for _, fault := range matrixFaults {
		for _, step := range m.steps(fault) {
			turns <- struct{}{}
			all.Go(func() {
				defer func() { <-turns }()
				m.try(context.WithoutCancel(t.Context()), step, fault)
			})
		}
	}
	all.Wait()
	m.unvisited()
	m.print()
	m.printAgain()
}

// try tries a cell, and again if it has told more of the machine than of the worker: never
// if what it leaves is wrong.
func (m *matrix) try(ctx context.Context, step matrixStep, fault string) {
	for round := 1; ; round++ {
		g := m.newGroup(step, fault, round)
		g.try(ctx)
		switch {
		case g.failed || len(g.late) == 0:
			return
		case round == matrixRounds:
			g.errorf("in each of %d rounds, lastly: %s", round, strings.Join(g.late, "; "))
			return
		}
		m.noteAgain(g, round)
	}
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{t: t, url: pgtest.NewURL(t), table: make(map[[3]string]string)}
	config, err := pgxpool.ParseConfig(m.url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 30
	m.pool = pgtest.PoolWith(t, config)
	if _, err = m.pool.Exec(t.Context(), matrixTables); err == nil {
		err = m.open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	bank := httptest.NewServer(matrixBank(m.pool))
	t.Cleanup(bank.Close)
	m.bank = bank.URL
	return m
}

// steps are those that are tried with a fault: all of them, unless a flag says less. What
// is short is to kill.
func (m *matrix) steps(fault string) (steps []matrixStep) {
	wanted, err := regexp.Compile(*matrixCells)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range matrixSteps {
		if wanted.MatchString(s.name+" × "+fault) && (fault == faultKill || !testing.Short()) {
			steps = append(steps, s)
		}
	}
	return steps
}

// note takes in what a cell was like.
func (m *matrix) note(way matrixWay, g *matrixGroup, seen string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table[[3]string{way.name, g.step.name, g.fault}] = seen
}

// noteAgain notes that a cell is tried again, and why.
func (m *matrix) noteAgain(g *matrixGroup, round int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again = append(m.again, fmt.Sprintf("%s × %s, after round %d: %s", g.step.name, g.fault, round, strings.Join(g.late, "; ")))
}

// printAgain says what was tried again.
func (m *matrix) printAgain() {
	if len(m.again) == 0 {
		m.t.Log("no cell was tried again")
		return
	}
	cells := make(map[string]bool)
	for _, why := range m.again {
		cell, _, _ := strings.Cut(why, ", after round")
		cells[cell] = true
	}
	m.t.Logf("%d cells were tried again, since attempts or times were off and what they left was not:\n%s", len(cells), strings.Join(m.again, "\n"))
}

// unvisited fails the test for every cell in which nothing was reached.
func (m *matrix) unvisited() {
	for _, way := range matrixWays {
		for _, fault := range matrixFaults {
			for _, step := range m.steps(fault) {
				if m.table[[3]string{way.name, step.name, fault}] == "" {
					m.t.Errorf("%s × %s: %s: not visited", step.name, fault, way.name)
				}
			}
		}
	}
}

func (m *matrix) print() {
	var b strings.Builder
	b.WriteString("\nWhat the worker took its attempts for→where the task is in the end/attempts/rows/charges:\n")
	for _, way := range matrixWays {
		fmt.Fprintf(&b, "\n%s\n", way.name)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "step")
		for _, fault := range matrixFaults {
			fmt.Fprint(w, "\t", fault)
		}
		fmt.Fprintln(w)
		for i, s := range matrixSteps {
			fmt.Fprintf(w, "%d %s", i+1, s.name)
			for _, fault := range matrixFaults {
				fmt.Fprint(w, "\t", cmp.Or(m.table[[3]string{way.name, s.name, fault}], "-"))
			}
			fmt.Fprintln(w)
		}
		_ = w.Flush() // into memory
	}
	m.t.Log(b.String())
}
