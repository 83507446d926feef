package bank_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
	"go.uber.org/goleak"
)

// processVariable makes this test binary a bank: it is its configuration.
const processVariable = "IDEM_TEST_BANK"

func TestMain(m *testing.M) {
	orders := os.Getenv(processVariable)
	if orders == "" {
		goleak.VerifyTestMain(m)
	}
	var cfg bank.Config
	err := json.Unmarshal([]byte(orders), &cfg)
	if err == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = bank.Child(context.Background(), os.Stdin, os.Stdout, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// command is a bank's process. The shell, if there is a line for it, comes before.
func command(t *testing.T, cfg bank.Config, shell string) *exec.Cmd {
	t.Helper()
	orders, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	if shell != "" {
		cmd = exec.Command("/bin/sh", "-c", shell+`; exec "$0"`, os.Args[0])
	}
	cmd.Env = append(os.Environ(), processVariable+"="+string(orders))
	return cmd
}

// process starts a bank that can be killed.
func process(t *testing.T, cfg bank.Config) *bank.Process {
	t.Helper()
	p, err := bank.StartProcess(command(t, cfg, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// running is a bank in this process.
type running struct {
	bank.Client
	t      *testing.T
	cfg    bank.Config
	log    string
	server *bank.Server
}

// start starts a bank on a log of its own, or on cfg.Log. It must end well.
func start(t *testing.T, cfg bank.Config) *running {
	t.Helper()
	if cfg.Log == "" {
		cfg.Log = newLog(t)
	}
	s, err := bank.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Client: bank.Client{URL: s.URL}, t: t, cfg: cfg, log: cfg.Log, server: s}
	t.Cleanup(r.stop)
	return r
}

func (r *running) stop() {
	if r.server == nil {
		return
	}
	if err := r.server.Stop(); err != nil {
		r.t.Errorf("Stop: got %v, want nil", err)
	}
	r.server = nil
}

// again stops the bank and starts another on its log.
func (r *running) again() *running {
	r.t.Helper()
	r.stop()
	return start(r.t, r.cfg)
}

func (r *running) must(key string, c bank.Charge) bank.Receipt {
	r.t.Helper()
	receipt, err := r.Charge(r.t.Context(), key, c)
	if err != nil {
		r.t.Fatalf("charge %s under %s: %v", c.Card, key, err)
	}
	return receipt
}

func (r *running) wantSummary(want bank.Summary) {
	r.t.Helper()
	if got, err := r.Summary(r.t.Context()); err != nil || got != want {
		r.t.Errorf("summary: got %+v and %v, want %+v", got, err, want)
	}
}

func (r *running) wantFound(reference string, want int) []bank.Receipt {
	r.t.Helper()
	got, err := r.Find(r.t.Context(), reference)
	if err != nil || len(got) != want {
		r.t.Errorf("find %s: got %+v and %v, want %d", reference, got, err, want)
	}
	return got
}

func newLog(t *testing.T) string { return filepath.Join(t.TempDir(), "bank.log") }

func lines(t *testing.T, log string) []string {
	t.Helper()
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// paying is a charge of 1500 with this card.
func paying(card string) bank.Charge {
	return bank.Charge{Reference: "charge:payment:1", Amount: 1500, Card: card}
}
