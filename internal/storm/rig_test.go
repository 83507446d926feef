package storm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/idem-go/idem/internal/storm"
)

// The environment of a storm's process: its role, how its shop is broken, and where
// it says that it is there.
const (
	pidsVariable   = "IDEM_TEST_STORM_PIDS"
	roleVariable   = "IDEM_TEST_STORM_ROLE"
	brokenVariable = "IDEM_TEST_STORM_BROKEN"

	bankLogVariable    = "IDEM_TEST_STORM_BANK_LOG"
	bankListenVariable = "IDEM_TEST_STORM_BANK_LISTEN"
)

// roleBank is the role of the bank, which is no process of a storm's.
const roleBank = "bank"

// TestMain is also the storm's processes.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		pgtest.Main(m)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv(pidsVariable), fmt.Sprint(role, ".", os.Getpid())), nil, 0o600); err != nil {
		exit(err)
	}
	switch role {
	case storm.RoleClient:
		exit(storm.Client(context.Background(), os.Stdin, os.Stdout))
	case roleBank:
		exit(serveBank(os.Getenv(brokenVariable), bank.Config{
			Log: os.Getenv(bankLogVariable), Listen: os.Getenv(bankListenVariable), Slow: 200 * time.Millisecond}))
	}
	exit(storm.Shop(context.Background(), os.Stdin, os.Stdout, serveBroken(os.Getenv(brokenVariable))))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveBroken serves a shop whose handler is wrapped, or whose tasks are worked on in
// another way; without the name of a way to break one, the shop as it is.
func serveBroken(name string) func(*shop.Shop, context.Context, net.Listener) error {
	wrap, wrapped := broken()[name]
	work, working := brokenWork()[name]
	if !wrapped && !working {
		return (*shop.Shop).Run
	}
	if !wrapped {
		wrap = func(h http.Handler) http.Handler { return h }
	}
	if !working {
		work = (*shop.Shop).Work
	}
	return func(s *shop.Shop, ctx context.Context, ln net.Listener) error {
		server := &http.Server{Handler: wrap(s.Handler())}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		var working sync.WaitGroup
		working.Go(func() { _ = work(s, ctx) })
		_ = server.Serve(ln) // closed when ctx ends
		working.Wait()
		return nil
	}
}

// rig is a database and the processes that storms on it have started.
type rig struct {
	url  string
	db   *idem.DB
	pids string // where each process leaves a file named by its role and number
	how  string // the shops are broken; empty if they are not
	bank *storm.Bank
	log  string // of the bank
	mu   sync.Mutex
	cmds map[string][]*exec.Cmd // by role
}

func newRig(t *testing.T) *rig {
	t.Helper()
	url := pgtest.NewURL(t)
	pool := pgtest.Pool(t, url)
	if err := shop.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s, err := shop.New(t.Context(), pool, shop.Config{}) // whose handle checks the money, too
	if err != nil {
		t.Fatal(err)
	}
	return &rig{url: url, db: s.DB(), pids: t.TempDir(), log: filepath.Join(t.TempDir(), "bank.log"), cmds: map[string][]*exec.Cmd{}}
}

// openBank starts the rig's bank, which ends with the test, unless there is one.
func (r *rig) openBank(t *testing.T) *storm.Bank {
	t.Helper()
	if r.bank != nil {
		return r.bank
	}
	var err error
	if r.bank, err = storm.OpenBank(r.bankCommand); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.bank.Close(); err != nil {
			t.Error(err)
		}
	})
	return r.bank
}

func (r *rig) bankCommand(listen string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+roleBank, brokenVariable+"="+r.how, pidsVariable+"="+r.pids,
		bankLogVariable+"="+r.log, bankListenVariable+"="+listen)
	return cmd
}

func (r *rig) broken(how string) *rig {
	r.how = how
	return r
}

// command starts this test binary again.
func (r *rig) command(role string) *exec.Cmd {
	r.mu.Lock()
	defer r.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, brokenVariable+"="+r.how, pidsVariable+"="+r.pids)
	if r.how == "speechless" {
		cmd = exec.Command("/bin/sh", "-c", "echo I have no words >&2")
	}
	r.cmds[role] = append(r.cmds[role], cmd)
	return cmd
}

func (r *rig) config(t *testing.T, cfg storm.Config) storm.Config {
	t.Helper()
	cfg.DB, cfg.DatabaseURL, cfg.Bank, cfg.Command, cfg.Seed = r.db, r.url, r.openBank(t), r.command, 7
	return cfg
}

// blow drives a storm.
func (r *rig) blow(t *testing.T, cfg storm.Config) *storm.Report {
	t.Helper()
	var last storm.Progress
	also := cfg.Progress
	cfg.Progress = func(p storm.Progress) {
		last = p
		if also != nil {
			also(p)
		}
	}
	report, err := storm.Run(t.Context(), r.config(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	if last.Done != last.Planned || last.Planned < 3*cfg.Intents {
		t.Errorf("progress ended at %+v; want all of at least %d", last, 3*cfg.Intents)
	}
	r.wantAllEnded(t)
	return report
}

// pay makes an order of a guest's, in a shop of the test's own, and pays for it at this
// bank.
func (r *rig) pay(t *testing.T, bankURL string) {
	t.Helper()
	s, err := shop.New(t.Context(), r.db.Pool(), shop.Config{Bank: bankURL})
	if err != nil {
		t.Fatal(err)
	}
	handler := s.Handler()
	post := func(path, body string) (id int64) {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "beside"+path)
		handler.ServeHTTP(w, req)
		var made struct{ ID int64 }
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
			t.Errorf("POST %s: got %d %s, want 201", path, w.Code, w.Body)
		}
		return made.ID
	}
	id := post("/orders", `{"customer_id":1,"amount":1}`)
	post("/payments", fmt.Sprintf(`{"order_id":%d,"card":"tok_ok"}`, id))
}

// killOne kills a process of this role that has not ended. It reports whether
// there is one.
func (r *rig) killOne(role string) bool {
	entries, err := os.ReadDir(r.pids)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		name, pid, _ := strings.Cut(entry.Name(), ".")
		if n, err := strconv.Atoi(pid); err == nil && name == role && syscall.Kill(n, syscall.SIGKILL) == nil {
			return true
		}
	}
	return false
}

// wantAllEnded checks that every process has been waited for.
func (r *rig) wantAllEnded(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for role, cmds := range r.cmds {
		for _, cmd := range cmds {
			if cmd.Process != nil && cmd.ProcessState == nil {
				t.Errorf("the %s process %d is left behind", role, cmd.Process.Pid)
			}
		}
	}
}
