package queue_test

import (
	"fmt"
	"strings"

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
// or, without one, at a place in the handler.
type matrixStep struct {
	name string
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

// inAllWays is the same in every way.
func inAllWays[T any](v T) map[string]T {
	return map[string]T{inTx: v, onLease: v, onLeaseOnly: v}
}

var (
	isPending   = inAllWays(matrixTruth{status: "pending"})
	isRunning   = inAllWays(matrixTruth{status: "running"})
	isCharged   = map[string]matrixTruth{inTx: {status: "running"}, onLease: {status: "running", charges: 1}, onLeaseOnly: {status: "running", charges: 1}}
	isCompleted = map[string]matrixTruth{inTx: {"done", 1, 0}, onLease: {"done", 1, 1}, onLeaseOnly: {"done", 0, 1}}
)

var matrixSteps = []matrixStep{
	{"take-sent", inAllWays(faultproxy.Executes(tasks.Take)), isPending},
	{"take-committed", inAllWays(matrixExecuted(tasks.Take)), isRunning},
	{placeBegun, nil, isRunning},
	{"work-sent", map[string]func(faultproxy.Message) bool{inTx: matrixBegins("begin"),
		onLease: faultproxy.Executes(effects.Start), onLeaseOnly: faultproxy.Executes(effects.Start)}, isRunning},
	{placeWorked, nil, isCharged},
	{"heartbeat-sent", inAllWays(faultproxy.Executes(tasks.Renew)), isRunning},
	{"heartbeat-committed", inAllWays(matrixExecuted(tasks.Renew)), isRunning},
	{placeEnded, nil, isCharged},
	{"completion-sent", map[string]func(faultproxy.Message) bool{inTx: matrixBegins(tasks.Done), onLease: matrixBegins(tasks.Done),
		onLeaseOnly: faultproxy.Executes(tasks.DoneAll)}, isCharged},
	{"committed", map[string]func(faultproxy.Message) bool{inTx: faultproxy.Completes("COMMIT"),
		onLease: matrixAfterDone(faultproxy.Completes("COMMIT")), onLeaseOnly: matrixExecuted(tasks.DoneAll)}, isCompleted},
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
