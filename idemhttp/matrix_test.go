package idemhttp_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
)

// wholeMatrix asks for every message of the transaction; without it the table has
// those of the round trip that commits, and the first one of the claim.
var wholeMatrix = flag.String("matrix", "short", "the messages of D2's table: short or all")

// matrixWidth is how many cells are tried at a time: most of their time they wait
// for a limit of the guard's to be over.
const matrixWidth = 40

// release is when what a fault holds back is let go.
type release int

const (
	never       release = iota // nothing is held
	atOnce                     // as soon as it is held
	whileAsking                // when the guard asks on another connection what came of it
	tooLate                    // after the client has its answer
)

// networkFaults are the columns of D2's table. harmless ones must not be noticed.
var networkFaults = []struct {
	name     string
	do       faultproxy.Action
	release  release
	harmless bool
}{
	{name: "cut before", do: faultproxy.Cut()},
	{name: "cut after", do: faultproxy.After(faultproxy.Cut())},
	{name: "reset", do: faultproxy.Reset()},
	{name: "delay 200 ms", do: faultproxy.Delay(200 * time.Millisecond), harmless: true},
	{name: "hold", do: faultproxy.Hold(), release: atOnce, harmless: true},
	{name: "drop reply", do: faultproxy.Drop(faultproxy.FromServer)},
	{name: "late", do: faultproxy.Late(), release: whileAsking},
	{name: "too late", do: faultproxy.Late(), release: tooLate},
}

func TestD2_messageTimesFault(t *testing.T) {
	long(t)
	t.Parallel()
	tryMatrix(t, idemhttp.Route{Wait: 100 * time.Millisecond})
}

// tryMatrix tries every fault at every message between the guard of a route and the
// server, and prints what the client was answered and what was true.
func tryMatrix(t *testing.T, route idemhttp.Route) {
	t.Helper()
	m := &matrix{t: t, url: pgtest.NewURL(t), route: route}
	m.truth = rigOn(t, pgtest.Pool(t, m.url))
	steps := m.steps()
	table := make([][]string, len(steps))
	for i := range table {
		table[i] = make([]string, len(networkFaults))
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, matrixWidth)
	for fault := len(networkFaults) - 1; fault >= 0; fault-- { // those that take longest first
		for i, step := range steps {
			turns <- struct{}{}
			c := m.newCell(route, step, fault)
			all.Go(func() {
				table[i][fault] = c.try()
				c.close()
				<-turns
			})
		}
	}
	all.Wait()
	t.Log("\n" + drawn(steps, table))
}

// matrix is the database that all cells share.
type matrix struct {
	t     *testing.T
	url   string
	route idemhttp.Route
	truth *rig // past the proxy
	cells int
}

// steps are the messages of one request on a warm connection.
func (m *matrix) steps() []faultproxy.Step {
	m.t.Helper()
	quiet := m.route
	quiet.Lease *= 60 // no renewal comes between them
	c := m.newCell(quiet, faultproxy.Step{}, 0)
	defer c.close()
	all, err := c.proxy.Enumerate(func() error {
		got := c.rig.send(c.sending)
		if got.err == nil && got.status != 201 {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return got.err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if *wholeMatrix == "all" {
		return all
	}
	for i, step := range all {
		if strings.HasPrefix(step.SQL, "release savepoint") {
			return append(all[:1:1], all[i:]...)
		}
	}
	m.t.Fatalf("the request's %d messages have no pipeline that commits", len(all))
	return nil
}

// drawn is the table as text.
func drawn(steps []faultproxy.Step, table [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "message")
	for _, f := range networkFaults {
		fmt.Fprint(w, "\t", f.name)
	}
	fmt.Fprintln(w)
	for i, step := range steps {
		fmt.Fprint(w, step)
		for _, cell := range table[i] {
			fmt.Fprint(w, "\t", cell)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	return b.String()
}
