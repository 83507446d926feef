package idemhttp

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
)

var update = flag.Bool("update", false, "write the generated parts of docs/http.md")

const httpPage = "../docs/http.md"

// TestDocs_httpPageIsMadeFromTheTable compares the generated parts of
// docs/http.md, which stand between markers, with what the code says. The text
// around them is written by hand.
func TestDocs_httpPageIsMadeFromTheTable(t *testing.T) {
	page, err := os.ReadFile(httpPage)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for _, part := range []struct {
		name string
		text string
	}{
		{"situations", situationsTable()},
		{"policy", policyTable()},
		{"headers", headersList()},
		{"limits", limitsTable()},
		{"problems", problemSections(t)},
	} {
		want = replacePart(t, want, part.name, part.text)
	}
	if *update {
		if err := os.WriteFile(httpPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Errorf("docs/http.md is stale at line %d; run: make docs", firstDifference(string(page), want))
	}
}

// TestDocs_everyProblemTypeHasAHeading proves that a problem's type leads to a
// place on the page.
func TestDocs_everyProblemTypeHasAHeading(t *testing.T) {
	page, err := os.ReadFile(httpPage)
	if err != nil {
		t.Fatal(err)
	}
	for profile := range profiles {
		for code, p := range problemTable(profile) {
			_, fragment, _ := strings.Cut(p.Type, "#")
			if n := strings.Count(string(page), "\n### "+fragment+"\n"); n != 1 {
				t.Errorf("type %s of %s: docs/http.md has %d headings %q, want 1", p.Type, code, n, fragment)
			}
		}
	}
}

// replacePart replaces what stands between the markers of a part.
func replacePart(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- made from the code: "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("docs/http.md lacks the markers %q and %q", begin, end)
	}
	return before + begin + text + end + after
}

// firstDifference is the number of the first line that differs.
func firstDifference(got, want string) int {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return i + 1
		}
	}
	return min(len(g), len(w)) + 1
}

func situationsTable() string {
	var b strings.Builder
	article, ietf := problemTable(Article), problemTable(IETF)
	b.WriteString("| problem | what it means | `article` | `ietf` | retryable | safe_new_key |\n|---|---|---|---|---|---|\n")
	for _, s := range situations {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %d | %d | %s | %s |\n", s.Code, s.Code, s.Title,
			article[s.Code].Status, ietf[s.Code].Status, yesNo(s.Retryable), yesNo(s.SafeNewKey))
	}
	return b.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// policyTable joins the statuses that follow each other under one policy.
func policyTable() string {
	words := map[Policy]string{
		CommitAndStore:   "committed | remembered",
		RollbackAndStore: "rolled back | remembered",
		RollbackAndFree:  "rolled back | not remembered: the key is free",
	}
	var b strings.Builder
	b.WriteString("| status | writes | answer |\n|---|---|---|\n")
	for first := 200; first < 600; {
		last, policy := first, DefaultPolicy(first)
		for last < 599 && DefaultPolicy(last+1) == policy {
			last++
		}
		status := fmt.Sprintf("%d to %d", first, last)
		if first == last {
			status = fmt.Sprint(first)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", status, words[policy])
		first = last + 1
	}
	return b.String()
}

func headersList() string {
	var names []string
	for _, name := range newHeaderList(nil) {
		names = append(names, "`"+name+"`")
	}
	return strings.Join(names, ", ") + "\n"
}

func limitsTable() string {
	var b strings.Builder
	b.WriteString("| limit | default | beyond it |\n|---|---|---|\n")
	for _, l := range []struct{ name, value, beyond string }{
		{"a key", bytesOf(idem.MaxKey), "`key-invalid`"},
		{"a scope", bytesOf(idem.MaxScope), "`not-applied`: a fault of the program"},
		{"the wait for the first request (`Wait`)", DefaultWait.String(), "`in-flight`"},
		{"the handler, all its runs together (`Limit`)", DefaultLimit.String(), "`unavailable`, rolled back"},
		{"runs after the first (40001, 40P01)", fmt.Sprint(maxReruns), "`unavailable`, rolled back"},
		{"a request's body (`MaxBody`)", bytesOf(DefaultMaxBody), "`body-too-large`"},
		{"an answer that is remembered (`MaxStored`)", bytesOf(DefaultMaxStored), "the first caller gets it, repeats get `answer-withheld`"},
		{"an answer that is held until its commit (`MaxHeld`)", bytesOf(DefaultMaxHeld), "`not-applied`, rolled back"},
		{"all bodies and answers that a guard holds (`MaxBuffers`)", bytesOf(DefaultMaxBuffers), "`unavailable`"},
		{"waiters for one request (`MaxWaiters`)", fmt.Sprint(DefaultMaxWaiters), "`in-flight` at once"},
		{"how long an answer is remembered (`TTL`)", hours(idem.DefaultTTL), "the request runs as new, or `answer-expired` where the route keeps a tombstone"},
		{"the bare key after that (`Tombstone`)", "none; with a `Lease` " + hours(DefaultTombstone), "the request runs as new"},
		{"how long a claim outlives its owner's last sign of life (`Lease`)", "none; `DefaultLease` is " + DefaultLease.String(), "a retry takes over"},
		{"one call of an effect (`Effect.Timeout`)", idem.DefaultTimeout.String(), "`outcome-unknown`, or the call is repeated (`Keyed`)"},
		{"an effect's key", bytesOf(idem.MaxEffectKey), "`idem.ErrEffectInvalid`: a fault of the program"},
		{"an effect's input and its result, as JSON", bytesOf(idem.MaxInput), "the same; a call that has been made is `outcome-unknown`"},
		{"a request's id (`RequestID`)", bytesOf(MaxRequestID), "it counts as none"},
		{"all `AfterCommit` functions together", afterCommitLimit.String(), "their context ends"},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.name, l.value, l.beyond)
	}
	return b.String()
}

func bytesOf(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

func hours(d time.Duration) string { return fmt.Sprintf("%d h", int(d.Hours())) }

// notes are what an option of a route changes in a problem.
func notes() map[string]string {
	return map[string]string{
		codeKeyInvalid: "Where several keys were sent, or the key is refused only by the route's `KeyFormat`, `safe_new_key` is false: an earlier send may have been accepted.",
		codeInFlight:   "A route with `InFlight202` answers 202 instead.",
	}
}

// problemSections has one heading per code, with the body as a client gets it.
func problemSections(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	article, ietf := problemTable(Article), problemTable(IETF)
	for i, s := range situations {
		p := article[s.Code]
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### %s\n\n%s. %s\n\n", s.Code, p.Title, p.Detail)
		fmt.Fprintf(&b, "- Status: %s.\n", statuses(p.Status, ietf[s.Code].Status))
		fmt.Fprintf(&b, "- Send the same request with the same key again: %s.%s\n", yesNo(p.Retryable), retryHeader(t, p))
		fmt.Fprintf(&b, "- Use a new key without fear of doing anything twice: %s.\n", yesNo(p.SafeNewKey))
		if note, ok := notes()[s.Code]; ok {
			fmt.Fprintf(&b, "- %s\n", note)
		}
	}
	return b.String()
}

func statuses(article, ietf int) string {
	text := fmt.Sprintf("%d %s", article, http.StatusText(article))
	if ietf != article {
		text += fmt.Sprintf("; in the `ietf` profile %d %s", ietf, http.StatusText(ietf))
	}
	return text
}

// retryHeader is what a written problem says about when to come back.
func retryHeader(t *testing.T, p problem) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.write(w)
	if !strings.Contains(w.Body.String(), `"code":"`+p.Code+`"`) {
		t.Errorf("the body of %s does not carry its code: %s", p.Code, w.Body.String())
	}
	if after := w.Header().Get("Retry-After"); after != "" {
		return " The answer carries `Retry-After: " + after + "`."
	}
	return ""
}
