package idemhttp_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/pgsql/keys"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
)

// The steps of a request on a lease, as docs/states.md numbers and names them.
const (
	stepClaimSent          = "claim-sent"
	stepClaimCommitted     = "claim-committed"
	stepClaimKnown         = "claim-known"
	stepIntentionSent      = "intention-sent"
	stepIntentionCommitted = "intention-committed"
	stepIntentionKnown     = "intention-known"
	stepCallSent           = "call-sent"
	stepCallReceived       = "call-received"
	stepCallDone           = "call-done"
	stepCallAnswered       = "call-answered"
	stepResultSent         = "result-sent"
	stepResultCommitted    = "result-committed"
	stepResultKnown        = "result-known"
	stepFinalBegun         = "final-begun"
	stepRowsWritten        = "rows-written"
	stepCommitSent         = "commit-sent"
	stepCommitted          = "committed"
	stepCommitKnown        = "commit-known"
	stepAnswerSent         = "answer-sent"
)

// crashStep says where a step is: at a message to or from the database, or, without
// one, at a place in the handler, around it, or on the way to the bank; and what must
// be true there.
type crashStep struct {
	name string
	when func(faultproxy.Message) bool
	true crashTruth
}

var crashSteps = []crashStep{
	{stepClaimSent, executes(keys.Lease), crashTruth{}},
	{stepClaimCommitted, executed(keys.Lease), crashTruth{claim: "claimed"}},
	{stepClaimKnown, nil, crashTruth{claim: "claimed"}},
	{stepIntentionSent, executes(effects.Start), crashTruth{claim: "claimed"}},
	{stepIntentionCommitted, executed(effects.Start), crashTruth{claim: "bound", effect: "started"}},
	{stepIntentionKnown, nil, crashTruth{claim: "bound", effect: "started"}},
	{stepCallSent, nil, crashTruth{claim: "bound", effect: "started"}},
	{stepCallReceived, nil, crashTruth{claim: "bound", effect: "started"}},
	{stepCallDone, nil, crashTruth{claim: "bound", effect: "started", charges: 1}},
	{stepCallAnswered, nil, crashTruth{claim: "bound", effect: "started", charges: 1}},
	{stepResultSent, executes(effects.Record), crashTruth{claim: "bound", effect: "started", charges: 1}},
	{stepResultCommitted, executed(effects.Record), crashTruth{claim: "bound", effect: "applied", charges: 1}},
	{stepResultKnown, nil, crashTruth{claim: "bound", effect: "applied", charges: 1}},
	{stepFinalBegun, executed(keys.Fence), crashTruth{claim: "bound", effect: "applied", charges: 1}},
	{stepRowsWritten, nil, crashTruth{claim: "bound", effect: "applied", charges: 1}},
	{stepCommitSent, begins(sqltx.ReleaseSavepoint), crashTruth{claim: "bound", effect: "applied", charges: 1}},
	{stepCommitted, faultproxy.Completes("COMMIT"), crashTruth{claim: "answered", effect: "applied", charges: 1, postings: 1}},
	{stepCommitKnown, nil, crashTruth{claim: "answered", effect: "applied", charges: 1, postings: 1}},
	{stepAnswerSent, nil, crashTruth{claim: "answered", effect: "applied", charges: 1, postings: 1}},
}

// executes matches the message that runs a statement, and executed its result, which
// the server sends when the statement has committed by itself.
func executes(sql string) func(faultproxy.Message) bool { return faultproxy.Executes(sql) }

func executed(sql string) func(faultproxy.Message) bool {
	return func(m faultproxy.Message) bool {
		return m.Direction == faultproxy.FromServer && m.Type == "CommandComplete" && m.SQL == sql
	}
}

// begins matches the first message of a batch that begins with a statement: nothing of
// the batch has passed. A batch of which a part has arrived and whose rest never comes
// has no limit on a server before PostgreSQL 17.
func begins(sql string) func(faultproxy.Message) bool {
	return func(m faultproxy.Message) bool {
		return m.Direction == faultproxy.FromClient && (m.Type == "Parse" || m.Type == "Bind") && m.SQL == sql
	}
}

// crashTruth is what is true of an order, seen from outside.
type crashTruth struct {
	claim    string // of its first key: its state, or bound for a claim that is
	effect   string // the status of its charge
	charges  int    // captured by the bank
	postings int
}

func (c crashTruth) String() string {
	return fmt.Sprintf("key %s, effect %s, %d charged, %d posted", cmp.Or(c.claim, "absent"), cmp.Or(c.effect, "absent"), c.charges, c.postings)
}

// The page's table and the matrix's are one list.
func TestCrash_stepsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## The steps of a request on a lease\n")
	if !found {
		t.Fatal("docs/states.md has no section of the steps")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var documented, tried []string
	for _, line := range strings.Split(section, "\n") {
		if columns := strings.Split(line, "|"); len(columns) > 3 && strings.Trim(columns[1], " 0123456789") == "" {
			documented = append(documented, strings.TrimSpace(columns[1])+" "+strings.TrimSpace(columns[2]))
		}
	}
	for i, s := range crashSteps {
		tried = append(tried, fmt.Sprint(i+1, " ", s.name))
	}
	if !slices.Equal(documented, tried) {
		t.Errorf("docs/states.md has the steps\n%s\nand the crash matrix\n%s", strings.Join(documented, "\n"), strings.Join(tried, "\n"))
	}
}
