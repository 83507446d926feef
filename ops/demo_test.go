package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
)

// demo is a running idem demo, after its storm.
type demo struct {
	t        *testing.T
	address  string // host:port
	database string // its URL
	begun    time.Time
	with     atomic.Int64 // requests that were sent with a key
	without  atomic.Int64
	said     struct {
		URL   string
		Bank  string
		Holds bool
		Storm stormReport
	}
}

// stormReport is what is looked at of what the storm has counted by itself.
type stormReport struct {
	Guarded, Bookings, Payments, Refunds column
	Tasks                                struct{ Done int }
}

// column is what happened at one path: requests that the shops were sent, answers that they
// gave, and those of other requests under a used key that were refused.
type column struct {
	Path           string
	Requests       int
	AlteredRefused int `json:"altered_refused"`
	Given          struct {
		Answers map[string]int
		Replays int
	}
	Database struct{ Rows int }
}

// startDemo runs the command, with a storm, on a database of its own, and calls watched with
// the address before anything happens there. It returns when the storm is over; the demo
// stays up until the test ends.
func startDemo(t *testing.T, watched func(address string)) *demo {
	t.Helper()
	d := &demo{t: t, address: freeAddress(t)}
	d.database = pgtest.Direct(t, pgtest.Empty(t))
	watched(d.address)
	intents := "60"
	if *draw {
		intents = "200"
	}
	cmd := exec.Command(build(t), "demo", "--storm", intents, "--seed", "5", "--faults", "--json",
		"--listen", d.address, "--database-url", d.database)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	d.begun = time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended with %v\n%s", err, stderr.String())
		}
	})
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := json.NewDecoder(stdout).Decode(&d.said); err != nil || !d.said.Holds {
		t.Fatalf("the storm: %v %+v\n%s", err, d.said, stderr.String())
	}
	return d
}

// freeAddress is one of this machine where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// request is one that is sent to the demo's shop.
type request struct {
	path, key, body string
	headers         map[string]string
}

// send sends it, wants the status, and returns the id in the answer, if there is one.
func (d *demo) send(r request, want int) (id int64) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.address+r.path, strings.NewReader(r.body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer demo-ops")
	if d.without.Add(1); r.key != "" {
		d.without.Add(-1)
		d.with.Add(1)
		req.Header.Set("Idempotency-Key", r.key)
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Error(err)
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	var answer struct{ ID int64 }
	if err := errors.Join(err, json.Unmarshal(text, &answer)); err != nil && want < 300 || res.StatusCode != want {
		d.t.Errorf("POST %s %s: got %s, want %d: %s", r.path, r.key, res.Status, want, text)
	}
	return answer.ID
}
