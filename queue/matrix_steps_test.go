package queue_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/pgsql/tasks"
)

// matrixWay is how a task is worked on. Each of them is in every process, with a worker, a
// queue and a proxy of its own.
type matrixWay struct {
	name    string
	charges int // that its task has the bank make
	rows    int // that it leaves in its final transaction
}

var matrixWays = []matrixWay{
	{inTx, 0, 1},
	{onLease, 1, 1},
	{onLeaseOnly, 1, 0},
}

const (
	inTx        = "in-the-transaction"
	onLease     = "on-a-lease"
	onLeaseOnly = "on-a-lease-alone" // without a final transaction: its end is one of a batch
)

// matrixStep says where a worker is stopped: at a message to or from the database, by way,
// or, without one, at a place in the handler. docs/states.md numbers and names the steps.
type matrixStep struct {
	name string
	is   map[string]string // by way: the step of a task, as docs/states.md names it
	at   map[string]func(faultproxy.Message) bool
	want map[string]matrixTruth
}

// matrixTruth is what is true of a task at a step, seen from outside.
type matrixTruth struct {
	status  string
	rows    int
	charges int
}

// The steps that are places in the handler.
const (
	placeBegun  = "handler-begun"
	placeWorked = "work-done"
	placeEnded  = "handler-ended"
)

// inWays is what is so in the transaction, on a lease, and on one without a final
// transaction.
func inWays[T any](tx, lease, alone T) map[string]T {
	return map[string]T{inTx: tx, onLease: lease, onLeaseOnly: alone}
}

// inAllWays is the same in every way.
func inAllWays[T any](v T) map[string]T { return inWays(v, v, v) }

var (
	isPending   = inAllWays(matrixTruth{status: "pending"})
	isRunning   = inAllWays(matrixTruth{status: "running"})
	isCharged   = inWays(matrixTruth{status: "running"}, matrixTruth{status: "running", charges: 1}, matrixTruth{status: "running", charges: 1})
	isCompleted = inWays(matrixTruth{"done", 1, 0}, matrixTruth{"done", 1, 1}, matrixTruth{"done", 0, 1})
)

var matrixSteps = []matrixStep{
	{"take-sent", inAllWays("take-sent"), inAllWays(faultproxy.Executes(tasks.Take)), isPending},
	{"take-committed", inAllWays("take-committed"), inAllWays(matrixExecuted(tasks.Take)), isRunning},
	{placeBegun, inAllWays("handler"), nil, isRunning},
	{"heartbeat-sent", inAllWays("heartbeat-sent"), inAllWays(faultproxy.Executes(tasks.Renew)), isRunning},
	{"heartbeat-committed", inAllWays("heartbeat-committed"), inAllWays(matrixExecuted(tasks.Renew)), isRunning},
	{"work-sent", inWays("begin-sent", "intention-sent", "intention-sent"),
		inWays(matrixBegins("begin"), faultproxy.Executes(effects.Start), faultproxy.Executes(effects.Start)), isRunning},
	{placeWorked, inWays("begun", "result-known", "result-known"), nil, isCharged},
	{placeEnded, inWays("rows-written", "rows-written", "result-known"), nil, isCharged},
	{"completion-sent", inWays("commit-sent", "commit-sent", "completion-sent"),
		inWays(matrixBegins(tasks.Done), matrixBegins(tasks.Done), faultproxy.Executes(tasks.DoneAll)), isCharged},
	{"committed", inWays("committed", "committed", "completion-committed"),
		inWays(faultproxy.Completes("COMMIT"), matrixAfterDone(faultproxy.Completes("COMMIT")), matrixExecuted(tasks.DoneAll)), isCompleted},
}

// matrixExecuted matches the result of a statement, which the server sends when that has
// committed, if it commits by itself.
func matrixExecuted(sql string) func(faultproxy.Message) bool {
	return func(m faultproxy.Message) bool {
		return m.Direction == faultproxy.FromServer && m.Type == "CommandComplete" && m.SQL == sql
	}
}

// matrixBegins matches the first message of a batch that begins with a statement: nothing of the
// batch has passed. Of one of which a part has arrived, and the rest never comes, a server
// before PostgreSQL 17 waits for the rest.
func matrixBegins(sql string) func(faultproxy.Message) bool {
	return func(m faultproxy.Message) bool {
		return m.Direction == faultproxy.FromClient && (m.Type == "Parse" || m.Type == "Bind" || m.Type == "Query") && strings.HasPrefix(m.SQL, sql)
	}
}

// matrixAfterDone is when, once the end of a task has been sent: what commits before are the
// effects' own.
func matrixAfterDone(when func(faultproxy.Message) bool) func(faultproxy.Message) bool {
	sent := false
	return func(m faultproxy.Message) bool {
		sent = sent || matrixBegins(tasks.Done)(m)
		return sent && when(m)
	}
}

// The faults.
const (
	faultKill = "SIGKILL"
	faultStop = "SIGSTOP beyond the lease"
	faultCut  = "connection cut"
	faultHole = "database black-holed"
)

// matrixFaults begins with those that take longest.
var matrixFaults = []string{faultStop, faultHole, faultKill, faultCut}

func (t matrixTruth) String() string {
	return fmt.Sprintf("%s, %d rows, %d charged", t.status, t.rows, t.charges)
}

// The page's table of the steps and the matrix's are one list.
func TestMatrix_stepsAreThoseOfThePage(t *testing.T) {
	var tried []string
	for i, s := range matrixSteps {
		tried = append(tried, strings.Join([]string{fmt.Sprint(i + 1), s.name, s.is[inTx], s.is[onLease], s.is[onLeaseOnly]}, " "))
	}
	var documented []string
	for _, row := range matrixPage(t, "Where the crash matrix strikes workers") {
		documented = append(documented, strings.Join(row, " "))
	}
	if !slices.Equal(documented, tried) {
		t.Errorf("docs/states.md has the steps\n%s\nand the crash matrix\n%s", strings.Join(documented, "\n"), strings.Join(tried, "\n"))
	}
}

// Each step of the matrix is one of the page's steps of a task, in their order.
func TestMatrix_stepsAreStepsOfATask(t *testing.T) {
	inTxSteps, leaseSteps := matrixNames(t, "The steps of a task in the transaction"), matrixNames(t, "The steps of a task on a lease")
	known, begin := slices.Index(leaseSteps, "result-known"), slices.Index(inTxSteps, "begin-sent")
	if known < 0 || begin < 0 {
		t.Fatal("docs/states.md does not say where the final transaction begins")
	}
	for way, steps := range inWays(inTxSteps, slices.Concat(leaseSteps[:known+1], inTxSteps[begin:]), leaseSteps) {
		last := 0
		for _, s := range matrixSteps {
			n := slices.Index(steps, s.is[way])
			if n < last {
				t.Errorf("%s: %s is %q, which docs/states.md does not have there", way, s.name, s.is[way])
			}
			last = max(last, n)
		}
	}
}

// matrixNames are the names of the steps in a section of docs/states.md.
func matrixNames(t *testing.T, section string) (names []string) {
	t.Helper()
	for _, row := range matrixPage(t, section) {
		names = append(names, row[1])
	}
	return names
}

// matrixPage are the rows of the table of steps in a section of docs/states.md.
func matrixPage(t *testing.T, section string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/states.md has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, line := range regexp.MustCompile(`(?m)^\| \d+ \| .* \|$`).FindAllString(text, -1) {
		rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
	}
	return rows
}
