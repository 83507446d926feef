package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// demoRun is one run of idem demo, while it runs and after.
type demoRun struct {
	stdout, stderr watched
	stop           context.CancelFunc
	ended          chan int
}

// watched is an output that is read while it is written.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// startDemo runs idem demo in an environment that it has to ignore.
func startDemo(t *testing.T, args ...string) *demoRun {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	r := &demoRun{stop: stop, ended: make(chan int, 1)}
	getenv := func(name string) string {
		if name == "DATABASE_URL" {
			return "postgres://nobody@127.0.0.1:1/nothing"
		}
		return ""
	}
	go func() {
		r.ended <- run(ctx, append([]string{"demo"}, args...), strings.NewReader(""), &r.stdout, &r.stderr, getenv)
	}()
	t.Cleanup(func() { r.stop() })
	return r
}

// wait returns the exit code.
func (r *demoRun) wait() int {
	code := <-r.ended
	r.ended <- code
	return code
}

// url waits until the demo says where things are.
func (r *demoRun) url(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`shop +(http://\S+)/\n`)
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if m := found.FindStringSubmatch(r.stdout.String()); m != nil {
			return m[1]
		}
		select {
		case code := <-r.ended:
			t.Fatalf("the demo ended with %d: %s", code, r.stderr.String())
		default:
		}
		if time.Now().After(deadline) {
			break
		}
	}
	t.Fatalf("the demo is not up after a minute: %s", r.stderr.String())
	return ""
}

func TestDemo_provesItselfAndLeaves(t *testing.T) {
	begun := time.Now()
	r := startDemo(t, "--listen", "127.0.0.1:0", "--storm", "200", "--exit")
	if code := r.wait(); code != exitDone {
		t.Fatalf("got exit code %d, want 0\n%s%s", code, r.stdout.String(), r.stderr.String())
	}
	out := r.stdout.String()
	for _, want := range []string{
		"POST /orders  POST /unguarded/orders\n",
		"intents                                         200 ",
		"double orders                                     0 ",
		"Bookings: 60 customers raced for 20 slots",
		"The proof holds: 200 intents, sent in ",
		"charges at the bank                             200\n",
		"payments in the shop                            200\n",
		"effects still unknown                             0\n",
		"sum of the ledger                                 0\n",
		"refunds at the bank                              46\n",
		"refunds in the shop                              46\n",
		"receipts of the orders                          200\n",
		"tasks that are done                             246\n",
		"tasks that are stuck                              0\n",
		"tasks that were applied twice                     0\n",
		"Killed with SIGKILL: ",
	} {
		if !strings.Contains(strings.ReplaceAll(out, "           POST /unguarded", "  POST /unguarded"), want) {
			t.Errorf("stdout lacks %q:\n%s", want, out)
		}
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s, want at most 1m", took)
	}
	for _, never := range []string{" 0 shops", " 0 connections cut", "the bank 0 times", "found unknown                             0\n"} {
		if strings.Contains(out, never) {
			t.Errorf("stdout has %q:\n%s", never, out)
		}
	}
	if strings.Contains(out, "\x1b") || strings.Contains(r.stderr.String(), "\x1b") {
		t.Error("colour codes where there is no terminal")
	}
}

func TestDemo_staysUpUntilItIsStopped(t *testing.T) {
	r := startDemo(t, "--listen", "127.0.0.1:0", "--storm", "0", "--faults")
	url := r.url(t)
	const body = `{"customer_id":123,"amount":1500}`
	const want = `{"id":1,"customer_id":123,"amount":1500,"status":"new"}`
	for try, replayed := range []string{"", "true"} {
		status, header, got := post(t, url+"/orders", body)
		if status != 201 || got != want || header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("try %d: got %d %s (replayed %q), want 201 %s (replayed %q)", try+1, status, got, header.Get("Idempotent-Replayed"), want, replayed)
		}
	}
	wantPayable(t, url)
	data := regexp.MustCompile(`data +(\S+), removed`).FindStringSubmatch(r.stdout.String())
	if data == nil {
		t.Fatalf("no data directory in:\n%s", r.stdout.String())
	}
	r.stop()
	if code := r.wait(); code != exitDone {
		t.Errorf("got exit code %d, want 0: %s", code, r.stderr.String())
	}
	if _, err := os.Stat(data[1]); !os.IsNotExist(err) {
		t.Errorf("the data directory %s is still there: %v", data[1], err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("the shop still answers")
	}
}

// wantPayable pays for the first order of the shop, as a person would with curl.
func wantPayable(t *testing.T, url string) {
	t.Helper()
	const body = `{"order_id":1,"card":"tok_ok"}`
	const want = `{"id":1,"order_id":1,"amount":1500,"status":"captured"}`
	for _, try := range []struct {
		key, replayed string
		status        int
		says          string
	}{{"pay", "", 201, want}, {"pay", "true", 201, want}, {"pay-again", "", 409, "already-paid"}} {
		status, header, got := postUnder(t, try.key, url+"/payments", body)
		if status != try.status || header.Get("Idempotent-Replayed") != try.replayed || !strings.Contains(got, try.says) {
			t.Errorf("payment under %s: got %d %s (replayed %q), want %d %s (replayed %q)",
				try.key, status, got, header.Get("Idempotent-Replayed"), try.status, try.says, try.replayed)
		}
	}
	wantStats(t, url, `"payments":1,"bank_charges":1`)
	wantRefundable(t, url)
}

// wantRefundable gives that payment back.
func wantRefundable(t *testing.T, url string) {
	t.Helper()
	const body = `{"payment_id":1}`
	const want = `{"id":1,"payment_id":1,"amount":1500,"status":"pending"}`
	for _, try := range []struct {
		key, replayed string
		status        int
		says          string
	}{{"refund", "", 202, want}, {"refund", "true", 202, want}, {"refund-again", "", 409, "already-refunded"}} {
		status, header, got := postUnder(t, try.key, url+"/refunds", body)
		if status != try.status || header.Get("Idempotent-Replayed") != try.replayed || !strings.Contains(got, try.says) {
			t.Errorf("refund under %s: got %d %s (replayed %q), want %d %s (replayed %q)",
				try.key, status, got, header.Get("Idempotent-Replayed"), try.status, try.says, try.replayed)
		}
	}
	const done = `"refunds":1,"receipts":1}`
	for limit := time.Now().Add(20 * time.Second); !strings.Contains(stats(t, url), done) && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
	}
	wantStats(t, url, done)
}

// wantStats checks what a shop says of its counts.
func wantStats(t *testing.T, url, says string) {
	t.Helper()
	if got := stats(t, url); !strings.Contains(got, says) {
		t.Errorf("GET /stats: got %s; want %s", got, says)
	}
}

func stats(t *testing.T, url string) string {
	t.Helper()
	w, err := http.Get(url + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func post(t *testing.T, url, body string) (int, http.Header, string) {
	t.Helper()
	return postUnder(t, "4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77", url, body)
}

func postUnder(t *testing.T, key, url, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, w.Header, string(got)
}

func TestDemo_keepsItsDataDirectoryAndKnowsAnotherVersion(t *testing.T) {
	dir := filepath.Join(serverDir(t), "data")
	for storm := 1; storm <= 2; storm++ {
		r := startDemo(t, "--listen", "127.0.0.1:0", "--storm", "20", "--exit", "--json", "--data-dir", dir)
		if code := r.wait(); code != exitDone {
			t.Fatalf("run %d: got exit code %d, want 0: %s", storm, code, r.stderr.String())
		}
		var got struct {
			Holds   bool
			DataDir string `json:"data_dir"`
			Storm   struct {
				Guarded struct {
					Database struct{ Rows int }
				}
			}
		}
		if err := json.Unmarshal([]byte(r.stdout.String()), &got); err != nil {
			t.Fatalf("run %d: stdout is not one JSON value: %v\n%s", storm, err, r.stdout.String())
		}
		if !got.Holds || got.DataDir != dir || got.Storm.Guarded.Database.Rows != 20 {
			t.Errorf("run %d: got %+v, want a proof of 20 orders in %s", storm, got, dir)
		}
	}
	r := startDemo(t, "--listen", "127.0.0.1:0", "--storm", "0", "--data-dir", dir)
	url := r.url(t)
	wantStats(t, url, `"orders":40,`)
	wantStats(t, url, `"payments":40,"bank_charges":40`) // the bank's log is kept, too
	r.stop()
	r.wait()

	if err := os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = startDemo(t, "--listen", "127.0.0.1:0", "--data-dir", dir)
	if code := r.wait(); code != exitFailed {
		t.Errorf("another version: got exit code %d, want 1", code)
	}
	wantOneLine(t, r.stderr.String(), "version")
}

// serverDir is a new directory that the embedded server's user can reach, which
// a test's own temporary directory need not be.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "idem-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantOneLine(t *testing.T, stderr, says string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "idem: ") || !strings.Contains(stderr, says) {
		t.Errorf("got stderr %q, want one line that says %q", stderr, says)
	}
}

func TestDemo_refusesFlagsThatContradict(t *testing.T) {
	for _, c := range []struct {
		args string
		says string
	}{
		{"--storm -1", "--storm is -1"},
		{"--storm 1048577", "--storm is 1048577"},
		{"--storm many", "--storm"},
		{"--exit --storm 0", "--exit leaves after the storm"},
		{"--seed 1 --storm 0", "--seed needs a storm"},
		{"--data-dir x --database-url postgres://127.0.0.1:1/x", "--data-dir is for the embedded"},
		{"--data-dir=", "--data-dir is empty"},
		{"--database-url=", "is empty"},
		{"--database-url postgres://127.0.0.1:port/x", "cannot be read"},
		{"--yes", "--yes is for"},
		{"--profile strict", `--profile is "strict"`},
		{"--listen 8000", "--listen is"},
		{"--listen 127.0.0.1:99999", "port"},
		{"--listen shop.example:80", "host"},
		{"now", "takes no arguments"},
		{"--unknown", "--unknown"},
	} {
		args := strings.Fields(c.args)
		if !strings.Contains(c.args, "--listen") {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		r := startDemo(t, args...)
		if code := r.wait(); code != exitUsage {
			t.Errorf("%s: got exit code %d, want 2", c.args, code)
		}
		wantOneLine(t, r.stderr.String(), c.says)
		if out := r.stdout.String(); out != "" {
			t.Errorf("%s: got stdout %q, want none", c.args, out)
		}
	}
}

func TestDemo_saysThatItsDataDirectoryIsNone(t *testing.T) {
	file := filepath.Join(serverDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := startDemo(t, "--listen", "127.0.0.1:0", "--data-dir", file)
	if code := r.wait(); code != exitFailed {
		t.Errorf("got exit code %d, want 1", code)
	}
	wantOneLine(t, r.stderr.String(), "idem: --data-dir: unusable data directory: ")
}

func TestDemo_saysThatItsAddressIsInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r := startDemo(t, "--listen", ln.Addr().String())
	if code := r.wait(); code != exitFailed {
		t.Errorf("got exit code %d, want 1", code)
	}
	wantOneLine(t, r.stderr.String(), ln.Addr().String()+" is in use")
}

func TestDemo_refusesSomebodyElsesDatabase(t *testing.T) {
	url := pgtest.Empty(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "create table customers (id bigint)"); err != nil {
		t.Fatal(err)
	}
	args := []string{"--listen", "127.0.0.1:0", "--storm", "10", "--exit", "--database-url", url}
	r := startDemo(t, args...)
	if code := r.wait(); code != exitRefused {
		t.Errorf("got exit code %d, want 4", code)
	}
	wantOneLine(t, r.stderr.String(), "public.customers")
	var schemas int
	err = conn.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname in ('idem', 'shop')").Scan(&schemas)
	if err != nil || schemas != 0 {
		t.Errorf("got %d schemas of ours, %v; want a database left as it was", schemas, err)
	}
	r = startDemo(t, append(args, "--yes")...)
	if code := r.wait(); code != exitDone || !strings.Contains(r.stdout.String(), "The proof holds: 10 intents") {
		t.Errorf("with --yes: got exit code %d, want 0\n%s%s", code, r.stdout.String(), r.stderr.String())
	}
}

func TestDemo_saysThatTheDatabaseIsAway(t *testing.T) {
	r := startDemo(t, "--listen", "127.0.0.1:0", "--database-url", "postgres://me:hunter2@127.0.0.1:1/shop")
	if code := r.wait(); code != exitUnavailable {
		t.Errorf("got exit code %d, want 6", code)
	}
	wantOneLine(t, r.stderr.String(), "idem: ")
	if strings.Contains(fmt.Sprint(r.stderr.String(), r.stdout.String()), "hunter2") {
		t.Errorf("the password was printed: %s", r.stderr.String())
	}
}

func TestDemo_itsProcessesAreNotForPeople(t *testing.T) {
	if help := command(t, nil, "--help"); strings.Contains(help.stdout, "demo-bank") {
		t.Errorf("the help shows demo-bank:\n%s", help.stdout)
	}
	for _, role := range []string{"shop", "client"} {
		got := command(t, nil, "demo-"+role)
		wantResult(t, got, exitFailed, "idem: storm: a "+role+" process has to be told by a storm what to do: EOF")
		if help := command(t, nil, "--help"); strings.Contains(help.stdout, "demo-"+role) {
			t.Errorf("the help shows demo-%s:\n%s", role, help.stdout)
		}
	}
}
