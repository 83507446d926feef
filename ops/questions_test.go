package ops_test

import (
	"flag"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var draw = flag.Bool("draw", false, "write the pictures of the dashboard, of a storm of 200 intents")

// TestDemo_answersTheArticlesQuestions has a real Prometheus scrape the demo from before its
// storm on, and compares what the expressions in docs/watching.md come to with what was done.
func TestDemo_answersTheArticlesQuestions(t *testing.T) {
	t.Parallel()
	var p *server
	d := startDemo(t, func(address string) { p = startPrometheus(t, address) })
	begin := p.scraped(t)
	wantStorm(t, p, begin, d.said.Storm)
	wantNames(t, d, p)

	did := d.work()
	wantAnswers(t, p, span{begin, p.scraped(t)}, did)
	if *draw {
		drawDashboard(t, d, p)
	}
}

// span is a time between two scrapes, as Unix time.
type span struct{ begin, end float64 }

// drawDashboard writes the pictures of docs/images from what Prometheus has seen.
func drawDashboard(t *testing.T, d *demo, p *server) {
	t.Helper()
	cmd := exec.Command("go", "run", ".", "--prometheus", p.url, "--out", "../../../docs/images",
		"--from", strconv.FormatInt(d.begun.Unix(), 10), "--to", strconv.FormatInt(time.Now().Unix(), 10))
	cmd.Dir = "grafana/draw"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// wantStorm compares the totals with the storm's own counts. A shop that is killed takes
// along what it was about to tell: so what was answered has been counted, and nothing has
// that was not sent; of what was done once, half has been told at least. What was sent in
// good weather is counted exactly.
func wantStorm(t *testing.T, p *server, at float64, s stormReport) {
	t.Helper()
	within := func(expr string, low, high int) {
		t.Helper()
		if got := p.number(t, expr, at); got < float64(low) || got > float64(high) {
			t.Errorf("%s: got %v, want %d to %d", expr, got, low, high)
		}
	}
	for _, c := range []column{s.Guarded, s.Bookings, s.Payments, s.Refunds} {
		of := func(more string) string {
			return fmt.Sprintf("sum(idem_requests_total{route=%q%s})", "POST "+c.Path, more)
		}
		answers := 0
		for _, n := range c.Given.Answers {
			answers += n
		}
		within(of(""), answers, c.Requests)
		within(of(`, outcome="replayed"`), c.Given.Replays, c.Requests)
		within(of(`, outcome="mismatch"`), c.AlteredRefused, c.Requests)
	}
	rows := s.Guarded.Database.Rows
	within(`idem_requests_total{route="POST /orders", outcome="executed"}`, (rows+1)/2, rows)
	within(`sum(idem_tasks_total{result="done"})`, (s.Tasks.Done+1)/2, s.Tasks.Done)
	for outcome, sent := range map[string]int{"key_missing": 1, "key_invalid": 2, "unauthenticated": 1, "body_too_large": 1} {
		within(fmt.Sprintf("sum(idem_requests_total{outcome=%q})", outcome), sent, sent)
	}
}

// scraped waits until the demo has been scraped once more, from now on, and returns when.
func (p *server) scraped(t *testing.T) (at float64) {
	t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	until(t, "the demo is scraped", func() bool {
		all := p.query(t, "min(timestamp(idem_effects_total))", 0)
		if len(all) == 1 {
			at = all[0].Value
		}
		return at > now
	})
	return at
}

// questions are the rows of the table in docs/watching.md: the expression for each.
func questions(t *testing.T) map[string]string {
	t.Helper()
	_, section, _ := strings.Cut(read(t, "../docs/watching.md"), "\n## The article's questions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	all := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| ([^|]+) \\| `(.+)` \\|$").FindAllStringSubmatch(section, -1) {
		all[m[1]] = strings.ReplaceAll(m[2], `\|`, "|")
	}
	return all
}

// since makes of an expression over a window, of which Prometheus estimates what it has not
// seen, the same over what has been counted since a scrape, exactly.
func since(expr string, begin float64) string {
	window := regexp.MustCompile(`\b(?:rate|increase)\(([^()]+)\[\w+\]\)`)
	return window.ReplaceAllString(expr, fmt.Sprintf("($1 - $1 @ %.3f)", begin))
}

func wantAnswers(t *testing.T, p *server, over span, did done) {
	t.Helper()
	asked := questions(t)
	for question, want := range map[string]struct {
		labels map[string]string
		value  float64
	}{
		"share of requests with a key":       {nil, float64(did.with) / float64(did.with+did.without)},
		"conflicts: a key with another body": {map[string]string{"route": "POST /orders"}, float64(did.mismatches)},
		"share of repeats among attempts":    {map[string]string{"kind": "refund.pay"}, float64(did.repeats) / float64(did.repeats+did.refunds)},
		"mean number of attempts":            {map[string]string{"kind": "refund.pay"}, float64(did.repeats+did.refunds) / float64(did.refunds)},
		"effects that were skipped":          {nil, float64(did.skipped)},
	} {
		expr, found := asked[question]
		if !found {
			t.Errorf("docs/watching.md has no row %q", question)
			continue
		}
		delete(asked, question)
		wantWritten(t, question, want.value)
		if got := one(t, p.query(t, since(expr, over.begin), over.end), want.labels); math.Abs(got-want.value) > 1e-9 {
			t.Errorf("%s: got %v, want %v of %+v, by\n%s", question, got, want.value, did, since(expr, over.begin))
		}
	}
	wantWait(t, p, asked, over, did.waited)
	for question := range asked {
		t.Errorf("docs/watching.md has the row %q, whose answer is not tested", question)
	}
}

// wantWritten wants docs/watching.md to say what is true.
func wantWritten(t *testing.T, question string, value float64) {
	t.Helper()
	_, row, _ := strings.Cut(read(t, "../docs/watching.md"), "answer |\n|---|---|---|\n")
	_, row, _ = strings.Cut(row, "| "+question+" | ")
	row, _, _ = strings.Cut(row, "\n")
	if want := "| " + strconv.FormatFloat(value, 'g', 3, 64) + " |"; !strings.HasSuffix(row, want) {
		t.Errorf("docs/watching.md says of %q: %s, want the answer %s", question, row, want)
	}
}

// wantWait wants that all who waited are counted, and that they waited for a while: the first
// one took three seconds.
func wantWait(t *testing.T, p *server, asked map[string]string, over span, waited int) {
	t.Helper()
	const question = "mean time until a stored answer is ready"
	expr := asked[question]
	delete(asked, question)
	orders := map[string]string{"route": "POST /orders"}
	count := since(`sum by (route) (increase(idem_wait_seconds_count[1h]))`, over.begin)
	if got := one(t, p.query(t, count, over.end), orders); got != float64(waited) {
		t.Errorf("%v waited, want %d", got, waited)
	}
	if got := one(t, p.query(t, since(expr, over.begin), over.end), orders); !(got > 0 && got <= 3.5) {
		t.Errorf("%s: got %v s, want at most the three of the first one, by\n%s", question, got, expr)
	}
}

// one is the value of the sample that has these labels.
func one(t *testing.T, all []sample, labels map[string]string) float64 {
	t.Helper()
	var found []float64
next:
	for _, s := range all {
		for name, value := range labels {
			if s.Metric[name] != value {
				continue next
			}
		}
		found = append(found, s.Value)
	}
	if len(found) != 1 {
		t.Errorf("got %v, want one value with the labels %v", all, labels)
		return math.NaN()
	}
	return found[0]
}

// wantNames wants every name that an alert, a panel or a page uses to be in a scrape of the
// demo, and every expression to be one for Prometheus.
func wantNames(t *testing.T, d *demo, p *server) {
	t.Helper()
	s := scrapeOf(t, "http://"+d.address)
	check := exec.Command(tool(t, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(s.text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	wantBounds(t, s)
	for where, all := range expressions(t) {
		for _, expr := range all {
			for _, lacking := range s.lacks(expr) {
				t.Errorf("%s: the demo's /metrics lacks %s:\n%s", where, lacking, expr)
			}
			p.query(t, strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$route", ".*", "$queue", ".*").Replace(expr), 0)
		}
	}
	var groups struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	until(t, "Prometheus has evaluated all rules", func() bool {
		p.get(t, "/api/v1/rules", nil, &groups)
		for _, r := range groups.Groups[0].Rules {
			if r.Health != "ok" {
				return false
			}
		}
		return len(groups.Groups[0].Rules) == len(rules(t))
	})
}

// TestExpressions_ofAShareAreOfTheSame wants a share that is asked for in several places to be
// one share.
func TestExpressions_ofAShareAreOfTheSame(t *testing.T) {
	for part, whole := range map[string]string{
		`outcome=~"key_missing|unguarded"`: `outcome!="unauthenticated"`,
		`result="retried"`:                 `result=~"done|retried|failed|cancelled"`,
	} {
		found := 0
		for where, all := range expressions(t) {
			for _, expr := range all {
				if !strings.Contains(expr, part) || !strings.Contains(expr, "/") {
					continue
				}
				if found++; !strings.Contains(expr, whole) {
					t.Errorf("%s: the share of %s is not of %s:\n%s", where, part, whole, expr)
				}
			}
		}
		if found < 4 {
			t.Errorf("the share of %s was found in %d places, want an alert, its page, a panel and docs/watching.md", part, found)
		}
	}
}

// expressions are all that are shipped, by where they are.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, r := range rules(t) {
		all["alert "+r.Alert] = []string{r.Expr}
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title] = append(all["panel "+p.Title], target.Expr)
		}
	}
	for name, page := range pages(t) {
		all[name+".md"] = blocks(page, "promql")
	}
	for question, expr := range questions(t) {
		all["watching.md, "+question] = []string{expr}
	}
	return all
}
