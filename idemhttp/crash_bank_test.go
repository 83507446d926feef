package idemhttp_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
)

// bankVariable makes this test binary a bank: it is the name of its log.
const bankVariable = "IDEM_TEST_CRASH_BANK"

func serveBank(log string) int {
	if err := bank.Child(context.Background(), os.Stdin, os.Stdout, bank.Config{Log: log}); err != nil {
		return fail(err)
	}
	return 0
}

// crashBank is a bank in a process of its own.
type crashBank struct {
	*bank.Process
	client  bank.Client
	process *os.Process
}

func startCrashBank(t *testing.T) *crashBank {
	t.Helper()
	b, err := openCrashBank(filepath.Join(t.TempDir(), "bank.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func openCrashBank(log string) (*crashBank, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), bankVariable+"="+log)
	p, err := bank.StartProcess(cmd)
	if err != nil {
		return nil, err
	}
	return &crashBank{Process: p, client: bank.Client{URL: p.URL}, process: cmd.Process}, nil
}

// freeze stops the bank: what is sent to it arrives, and nothing is done about it.
func (b *crashBank) freeze() error { return b.process.Signal(syscall.SIGSTOP) }
func (b *crashBank) thaw() error   { return b.process.Signal(syscall.SIGCONT) }

// charged is how many charges of an order the bank has captured.
func (b *crashBank) charged(ctx context.Context, p payment) (n int, err error) {
	receipts, err := b.client.Find(ctx, p.charge().Reference)
	for _, r := range receipts {
		if r.Status == bank.Captured {
			n++
		}
	}
	return n, err
}

// at is the bank's host:port.
func (b *crashBank) at() string { return strings.TrimPrefix(b.URL, "http://") }
