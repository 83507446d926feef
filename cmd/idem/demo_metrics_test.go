package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/storm"
)

// scrapeDemo is what Prometheus would get from the demo, by name and labels as they are written.
func scrapeDemo(t *testing.T, url string) map[string]float64 {
	t.Helper()
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	values := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		line := lines.Text()
		if at := strings.LastIndexByte(line, ' '); at > 0 && !strings.HasPrefix(line, "#") {
			if values[line[:at]], err = strconv.ParseFloat(line[at+1:], 64); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	return values
}

// report waits until the demo has written its report.
func (r *demoRun) report(t *testing.T) (url string, report *storm.Report) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		var out demoJSON
		if json.Unmarshal([]byte(r.stdout.String()), &out) == nil && out.Storm != nil {
			return out.URL, out.Storm
		}
	}
	t.Fatalf("no report after a minute: %s", r.stderr.String())
	return "", nil
}

// The demo's /metrics has what its storm did, in shops that were killed meanwhile, too: what
// is killed takes along what it was about to tell, and nothing else.
func TestDemo_metricsTellWhatTheStormDid(t *testing.T) {
	r := startDemo(t, "--listen", "127.0.0.1:0", "--storm", "60", "--json")
	url, report := r.report(t)
	got := scrapeDemo(t, url)
	requests := func(path, outcome string) float64 {
		return got[`idem_requests_total{outcome="`+outcome+`",route="POST `+path+`"}`]
	}
	for outcome, want := range map[string]float64{"key_missing": 1, "key_invalid": 2, "unauthenticated": 1, "body_too_large": 1} {
		if n := requests("/orders", outcome); n != want {
			t.Errorf("%v requests are %s, want %v", n, outcome, want)
		}
	}
	for _, c := range []storm.Column{report.Guarded, report.Bookings.Column, report.Payments.Column, report.Refunds.Column} {
		told, given := 0.0, 0
		for name, n := range got {
			if strings.HasPrefix(name, "idem_requests_total{") && strings.HasSuffix(name, `route="POST `+c.Path+`"}`) {
				told += n
			}
		}
		for _, n := range c.Given.Answers {
			given += n
		}
		if told < float64(given) || told > float64(c.Requests) {
			t.Errorf("%s: %v requests were counted, for %d answers and %d requests", c.Path, told, given, c.Requests)
		}
		if n := requests(c.Path, "replayed"); n < float64(c.Given.Replays) {
			t.Errorf("%s: %v replays were counted, and %d were given", c.Path, n, c.Given.Replays)
		}
	}
	if n, rows := requests("/orders", "executed"), report.Guarded.Database.Rows; n > float64(rows) || n < float64(rows)/2 {
		t.Errorf("%v orders were counted, and %d are there", n, rows)
	}
	done := got[`idem_tasks_total{kind="receipt.send",queue="shop",result="done"}`] + got[`idem_tasks_total{kind="refund.pay",queue="shop",result="done"}`]
	if done > float64(report.Tasks.Done) || done < float64(report.Tasks.Done)/2 {
		t.Errorf("%v tasks were counted, and %d are done", done, report.Tasks.Done)
	}
	for name, want := range map[string]float64{"idem_database_up": 1, "idem_effects_unsettled": 0, `idem_tasks{queue="shop",status="pending"}`: 0,
		`idem_tasks{queue="shop",status="failed"}`: 0, `idem_in_flight{route="POST /orders"}`: 0} {
		if n, there := got[name]; !there || n != want {
			t.Errorf("%s is %v (there: %v), want %v", name, n, there, want)
		}
	}
	wantShown(t, got)
	r.stop()
	if code := r.wait(); code != exitDone {
		t.Errorf("got exit code %d\n%s", code, r.stderr.String())
	}
}

// wantShown fails unless what docs/watching.md says that the demo's storm makes is there.
func wantShown(t *testing.T, got map[string]float64) {
	t.Helper()
	page, err := os.ReadFile("../../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What the demo shows\n")
	shown := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(section, -1)
	if len(shown) != 3 {
		t.Fatalf("docs/watching.md says of %d metrics what the demo shows, want 3", len(shown))
	}
	for _, m := range shown {
		for _, word := range strings.Fields(strings.ReplaceAll(m[2], "`", "")) {
			n := 0.0
			for name, v := range got {
				if strings.HasPrefix(name, m[1]+"{") && strings.Contains(name, `="`+word+`"`) {
					n += v
				}
			}
			if n == 0 {
				t.Errorf("%s: the storm made nothing that is %s", m[1], word)
			}
		}
	}
}
