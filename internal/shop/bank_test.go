package shop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/shop/bank"
)

// bankVariable makes this test binary a bank: it is its configuration.
const bankVariable = "IDEM_TEST_BANK"

func beBank(orders string) (exit int) {
	var cfg bank.Config
	err := json.Unmarshal([]byte(orders), &cfg)
	if err == nil {
		err = bank.Child(context.Background(), os.Stdin, os.Stdout, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// account is a bank in a process of its own, which can be killed and started again
// at the same place.
type account struct {
	bank.Client
	t       *testing.T
	cfg     bank.Config
	process *bank.Process
}

// openBank starts a bank with a log of its own.
func openBank(t *testing.T) *account {
	t.Helper()
	b := &account{t: t, cfg: bank.Config{Log: filepath.Join(t.TempDir(), "bank.log"), Slow: 300 * time.Millisecond}}
	b.start()
	b.URL, b.cfg.Listen = b.process.URL, b.process.Addr
	t.Cleanup(func() { b.process.Kill() })
	return b
}

func (b *account) start() {
	b.t.Helper()
	orders, err := json.Marshal(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), bankVariable+"="+string(orders))
	if b.process, err = bank.StartProcess(cmd); err != nil {
		b.t.Fatal(err)
	}
}

func (b *account) want(charges, declined int64) {
	b.t.Helper()
	got, err := b.Summary(b.t.Context())
	if err != nil || got.Charges != charges || got.Declined != declined || got.Doubled != 0 || got.DoubledKeys != 0 {
		b.t.Errorf("the bank: got %+v, %v; want %d charges, %d declined, none doubled", got, err, charges, declined)
	}
}

func (b *account) faults(f bank.Faults) {
	b.t.Helper()
	if err := b.SetFaults(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

// openPaying is a shop with a bank and an order of 1500, which is guest's.
func openPaying(t *testing.T, cfg shop.Config) (*running, *account) {
	t.Helper()
	b := openBank(t)
	cfg.Bank = b.URL
	r := open(t, cfg)
	r.order("o")
	return r, b
}

// order makes an order of 1500.
func (r *running) order(key string, header ...string) {
	r.t.Helper()
	if got := r.must("POST", "/orders", articleOrder, append(header, "Idempotency-Key", key)...); got.status != 201 {
		r.t.Fatalf("the order: got %d %s", got.status, got.body)
	}
}

// pay pays order 1.
func (r *running) pay(key, card string, header ...string) answer {
	r.t.Helper()
	return r.must("POST", "/payments", paying(1, card), append(header, "Idempotency-Key", key)...)
}

func paying(order int, card string) string {
	return fmt.Sprintf(`{"order_id":%d,"card":%q}`, order, card)
}

// wantLedger checks that so much has been taken in, and that the ledger sums to zero.
func (r *running) wantLedger(cash int) {
	r.t.Helper()
	want := fmt.Sprintf(`{"accounts":[{"name":"cash","balance":%d},{"name":"sales","balance":%d}],"sum":0}`, cash, -cash)
	if got := r.must("GET", "/ledger", ""); got.status != 200 || got.body != want || got.header.Get("Cache-Control") != "no-store" {
		r.t.Errorf("GET /ledger: got %d %s, want 200 %s", got.status, got.body, want)
	}
}

func (r *running) wantPaid(got answer) {
	r.t.Helper()
	if want := `"order_id":1,"amount":1500,"status":"captured"}`; got.status != 201 || len(got.body) < len(want) || got.body[len(got.body)-len(want):] != want {
		r.t.Errorf("got %d %s, want 201 and %s", got.status, got.body, want)
	}
}

func (r *running) wantRefused(got answer, status int, code string) {
	r.t.Helper()
	if got.status != status || got.code(r.t) != code {
		r.t.Errorf("got %d %s, want %d %s", got.status, got.body, status, code)
	}
}
