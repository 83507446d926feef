package idemclient_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemclient"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The environment of a child that serves a shop: its database and its bank.
const (
	shopDatabase = "IDEM_TEST_CLIENT_SHOP_DATABASE"
	shopBank     = "IDEM_TEST_CLIENT_SHOP_BANK"
)

// newShop is a guarded handler on a lease that pays at bank, in an idem.Call that
// knows nothing of keys. By the header Effect a request names its effect.
func newShop(ctx context.Context, pool *pgxpool.Pool, client *http.Client, bank string) (http.Handler, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	return guard.Route(idemhttp.Route{Name: "POST /payments", Lease: idemhttp.DefaultLease})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		effect := idem.Effect{Scope: "shop", Key: r.Header.Get("Effect"), Provider: idem.Keyed(time.Hour)}
		receipt, err := idem.Call(r.Context(), effect, func(ctx context.Context, _ string) (string, error) {
			return payDeep(ctx, client, bank, 5)
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, receipt)
	})), nil
}

// payDeep pays from the depths of a program, under values, a deadline and an intent
// that are its own.
func payDeep(ctx context.Context, client *http.Client, bank string, depth int) (string, error) {
	if depth > 0 {
		ctx, cancel := context.WithTimeout(idemclient.WithIntent(ctx, fmt.Sprint("depth:", depth)), time.Minute)
		defer cancel()
		return payDeep(ctx, client, bank, depth-1)
	}
	resp, body, err := post(ctx, client, bank, "1500")
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the bank answered %s", resp.Status)
	}
	return body, err
}

// serveShopAsChild serves a shop until its parent is gone.
func serveShopAsChild(url, bank string) int {
	err := func() error {
		pool, err := pgxpool.New(context.Background(), url)
		if err != nil {
			return err
		}
		transport, err := idemclient.New(idemclient.Config{})
		if err != nil {
			return err
		}
		shop, err := newShop(context.Background(), pool, &http.Client{Transport: transport}, bank)
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println("listens", listener.Addr())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the parent does
			os.Exit(1)
		}()
		return http.Serve(listener, shop)
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// shop serves newShop in this process, on a transport that makes so many attempts.
func shop(t testing.TB, pool *pgxpool.Pool, bank string, attempts int) string {
	t.Helper()
	h, err := newShop(t.Context(), pool, newClient(t, idemclient.Config{Attempts: attempts}), bank)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// buy sends a payment's request.
func buy(t testing.TB, shop, key, effect string) (status int, body string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shop, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(header, key)
	r.Header.Set("Effect", effect)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	resp, body, err := do(&http.Client{Transport: base}, r)
	if err != nil {
		return 0, "", err
	}
	return resp.StatusCode, body, nil
}

// wantPaid wants the payment to be answered by the bank's receipt.
func wantPaid(t testing.TB, shop, key, effect string) {
	t.Helper()
	if status, body, err := buy(t, shop, key, effect); status != 200 || body != "receipt" || err != nil {
		t.Fatalf("got %d %q (%v), want the receipt", status, body, err)
	}
}

// wantDownstream wants key to be the one that is stored with the effect.
func wantDownstream(t testing.TB, pool *pgxpool.Pool, effect, key string) {
	t.Helper()
	var stored string
	err := pool.QueryRow(t.Context(), "select downstream_key from idem.applied_effects where scope = 'shop' and effect_key = $1", effect).Scan(&stored)
	if err != nil || stored != key {
		t.Errorf("the bank was sent %q, the effect has %q (%v)", key, stored, err)
	}
}

func TestEffect_requestsCarryItsDownstreamKey(t *testing.T) {
	pool := pgtest.New(t)
	bank := newServer(t, answer(200, "receipt"))
	at := shop(t, pool, bank.URL, 1)
	wantPaid(t, at, "k", "charge:1")
	wantDownstream(t, pool, "charge:1", bank.wantSame(t, 1, "1500"))
	wantPaid(t, at, "another", "charge:2")
	got := bank.got()
	if got[1].key == got[0].key {
		t.Errorf("two effects have the key %q", got[0].key)
	}
	wantDownstream(t, pool, "charge:2", got[1].key)
}

// The transport asks again inside one call: the effect is called once.
func TestEffect_retriesOfTheTransportKeepTheKey(t *testing.T) {
	pool := pgtest.New(t)
	bank := newServer(t, cut, problem(503, `{"code":"unavailable","retryable":true}`), cut, answer(200, "receipt"))
	wantPaid(t, shop(t, pool, bank.URL, 10), "k", "charge:1")
	wantDownstream(t, pool, "charge:1", bank.wantSame(t, 4, "1500"))
	wantCalls(t, pool, 1)
}

// The effect is called again, by the transport's giving up each time.
func TestEffect_everyCallSendsTheSameKey(t *testing.T) {
	pool := pgtest.New(t)
	bank := newServer(t, cut, cut, answer(200, "receipt"))
	wantPaid(t, shop(t, pool, bank.URL, 1), "k", "charge:1")
	wantDownstream(t, pool, "charge:1", bank.wantSame(t, 3, "1500"))
	wantCalls(t, pool, 3)
}

// wantCalls wants the one effect to have been called n times.
func wantCalls(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	var calls int
	if err := pool.QueryRow(t.Context(), "select calls from idem.applied_effects").Scan(&calls); err != nil || calls != n {
		t.Errorf("the effect was called %d times (%v), want %d", calls, err, n)
	}
}

func TestEffect_anotherProcessSendsTheSameKey(t *testing.T) {
	url := pgtest.NewURL(t)
	pool := pgtest.Pool(t, url)
	arrived := make(chan struct{})
	bank := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		silent(w, r)
	}, answer(200, "receipt"))
	address, kill := startShop(t, url, bank.URL)
	answered := make(chan error, 1)
	go func() {
		_, _, err := buy(t, address, "k", "charge:1")
		answered <- err
	}()
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the first process has not called the bank")
	}
	kill()
	if err := <-answered; err == nil {
		t.Fatal("the first process has answered")
	}
	// Its lease is over.
	if _, err := pool.Exec(t.Context(), "update idem.idempotency_keys set lease_until = clock_timestamp() where state = 'claimed'"); err != nil {
		t.Fatal(err)
	}
	wantPaid(t, shop(t, pool, bank.URL, 1), "k", "charge:1")
	wantDownstream(t, pool, "charge:1", bank.wantSame(t, 2, "1500"))
}

// startShop starts a process that serves a shop. It is killed when the test ends, or
// after a minute.
func startShop(t testing.TB, url, bank string) (at string, kill func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), shopDatabase+"="+url, shopBank+"="+bank)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	lines, kill := runChild(t, cmd, cancel)
	return "http://" + await(t, lines, "listens"), kill
}
