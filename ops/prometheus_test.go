package ops_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// scrapeEvery is how often the tests' Prometheus scrapes, and how long a scrape may take.
const scrapeEvery = time.Second

// server is a Prometheus of the test's own.
type server struct{ url string }

// startPrometheus starts a Prometheus that scrapes the address target, also before anybody
// listens there, and has the rules of alerts.yaml. It ends with the test.
func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	dir := t.TempDir()
	alerts, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: %v, scrape_timeout: %v, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: demo
    static_configs: [{targets: [%q]}]
`, scrapeEvery, scrapeEvery, alerts, target))
	cmd := exec.Command(tool(t, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		address := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				listens <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = cmd.Wait()
	})
	select {
	case address := <-listens:
		p := &server{"http://" + address}
		until(t, "Prometheus is ready", func() bool {
			res, err := http.Get(p.url + "/-/ready")
			if err == nil {
				_ = res.Body.Close()
			}
			return err == nil && res.StatusCode == http.StatusOK
		})
		return p
	case <-ended:
		t.Fatal("prometheus ended before it listened")
	case <-time.After(time.Minute):
		t.Fatal("prometheus does not listen after a minute")
	}
	return nil
}

// until waits for what is to come true within a minute.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		if is() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is still not so that %s", what)
		}
	}
}

// sample is one line of an answer.
type sample struct {
	Metric map[string]string
	Value  float64
}

// get asks the API and puts what it says into data.
func (p *server) get(t *testing.T, path string, form url.Values, data any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+form.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %s %s %v", path, form, res.Status, answer.Error, err)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		t.Fatal(err)
	}
}

// query asks for the value of an expression at a moment, as Unix time; 0 is now. Of a moment
// at which there was a scrape it knows: one that failed leaves no values behind it.
func (p *server) query(t *testing.T, expr string, at float64) (all []sample) {
	t.Helper()
	form := url.Values{"query": {expr}}
	if at != 0 {
		form.Set("time", strconv.FormatFloat(at, 'f', 3, 64))
	}
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	p.get(t, "/api/v1/query", form, &data)
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sample{r.Metric, v})
	}
	return all
}

// number is the value of an expression that has one.
func (p *server) number(t *testing.T, expr string, at float64) float64 {
	t.Helper()
	all := p.query(t, expr, at)
	if len(all) != 1 {
		t.Fatalf("%s has %d values, want one: %v", expr, len(all), all)
	}
	return all[0].Value
}
