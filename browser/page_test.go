package browser

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
	"github.com/jackc/pgx/v5/pgxpool"
)

// openShop starts a shop on a database of its own and returns its port. It is
// stopped with the test.
func openShop(t *testing.T, cfg shop.Config) (pool *pgxpool.Pool, port int) {
	t.Helper()
	pool = pgtest.New(t)
	if err := shop.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s, err := shop.New(t.Context(), pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want nil after a shutdown", err)
		}
	})
	return pool, ln.Addr().(*net.TCPAddr).Port
}

// count reads one number from the database.
func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	guardedOrders   = "select count(*) from shop.orders"
	guardedIntents  = "select count(distinct customer_id) from shop.orders"
	rememberedKeys  = "select count(*) from idem.idempotency_keys"
	unguardedOrders = "select count(*) from shop.unguarded_orders"
	unguardedDouble = "select count(*) - count(distinct customer_id) from shop.unguarded_orders"
)

const (
	waits   = `document.querySelector("#%s-status[data-state=waiting]")?.textContent === "Waiting for completion"`
	hasEnd  = `document.querySelector("#%s-status[data-state=done]") !== null`
	counted = `Number(document.querySelector("[data-count='%s']").textContent) === %d`
)

// click clicks a side's button as a person would who sees it, and waits until
// the page says that it waits.
func (b *tab) click(side string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS("#" + side + "-order")))
	b.waitFor(fmt.Sprintf(waits, side))
}

// clickBoth is one intent on each side, until both have their end.
func (b *tab) clickBoth() {
	b.t.Helper()
	b.click("guarded")
	b.click("unguarded")
	b.waitFor(fmt.Sprintf(hasEnd, "guarded"))
	b.waitFor(fmt.Sprintf(hasEnd, "unguarded"))
}

// wantKeys checks that every request had a key, and each intent one of its own.
func (b *tab) wantKeys(path string, intents, requests int) {
	b.t.Helper()
	keys := map[string]int{}
	sent := b.requests("POST", path)
	for _, r := range sent {
		keys[r.key]++
	}
	if keys[""] > 0 || len(keys) != intents || len(sent) < requests {
		b.t.Errorf("POST %s: got %d requests with the keys %v; want at least %d with %d keys", path, len(sent), keys, requests, intents)
	}
}

func TestPage_badNetworkDoublesOnlyWhatIsUnguarded(t *testing.T) {
	for _, faults := range []bool{true, false} {
		t.Run(fmt.Sprintf("faults %t", faults), func(t *testing.T) {
			pool, port := openShop(t, shop.Config{Faults: faults})
			b := newTab(t)
			b.run(chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/", port)), chromedp.Click(chromedp.CSS("#bad-network")))
			const clicks = 3 // with and without a failure of the shop
			for range clicks {
				b.clickBoth()
			}
			if orders, intents := count(t, pool, guardedOrders), count(t, pool, guardedIntents); orders != clicks || intents != clicks {
				t.Errorf("guarded: got %d orders for %d intents, want %d for %d", orders, intents, clicks, clicks)
			}
			doubles := count(t, pool, unguardedDouble)
			if doubles < clicks { // at least two requests of a click are let through whole
				t.Errorf("unguarded: got %d double orders of %d, want at least %d", doubles, count(t, pool, unguardedOrders), clicks)
			}
			if keys := count(t, pool, rememberedKeys); keys != clicks {
				t.Errorf("got %d remembered keys, want %d", keys, clicks)
			}
			b.wantKeys(":"+fmt.Sprint(port)+"/orders", clicks, 5*clicks)
			b.wantKeys("/unguarded/orders", clicks, 5*clicks)
			b.waitFor(fmt.Sprintf(counted, "guarded.orders", clicks))
			b.waitFor(fmt.Sprintf(counted, "guarded.doubles", 0))
			b.waitFor(fmt.Sprintf(counted, "unguarded.doubles", doubles))
			b.waitFor(fmt.Sprintf(counted, "guarded.clicks", clicks))
		})
	}
}

func TestPage_goodNetworkSendsEachClickOnce(t *testing.T) {
	pool, port := openShop(t, shop.Config{})
	b := newTab(t)
	b.run(chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/", port)))
	// The keyboard reaches the button and works it.
	b.run(chromedp.Focus(chromedp.CSS("#guarded-order")), chromedp.KeyEvent("\r"))
	b.waitFor(fmt.Sprintf(hasEnd, "guarded"))
	b.run(chromedp.KeyEvent(" "))
	b.waitFor(fmt.Sprintf(counted, "guarded.orders", 2))
	if got := len(b.requests("POST", "/orders")); got != 2 {
		t.Errorf("got %d requests, want 2", got)
	}
	if got := count(t, pool, guardedOrders); got != 2 {
		t.Errorf("got %d orders, want 2", got)
	}
}

// A duplicate that the shop does not let wait is told 425, and comes back after
// Retry-After under the same key.
func TestPage_comesBackWhenItsRequestIsInFlight(t *testing.T) {
	pool, port := openShop(t, shop.Config{Faults: true, Wait: -1})
	b := newTab(t)
	b.run(chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/", port)), chromedp.Click(chromedp.CSS("#bad-network")))
	b.click("guarded")
	b.waitFor(`document.querySelector("#guarded-detail").textContent.startsWith("still in flight; the same key again in 1 s")`)
	b.waitFor(fmt.Sprintf(waits, "guarded"))
	b.waitFor(fmt.Sprintf(hasEnd, "guarded"))
	var tooEarly int
	for _, r := range b.requests("POST", "/orders") {
		if r.status == 425 {
			tooEarly++
		}
	}
	if tooEarly == 0 {
		t.Errorf("got no 425 in %+v, want at least one", b.requests("POST", "/orders"))
	}
	b.wantKeys("/orders", 1, 5)
	if got := count(t, pool, guardedOrders); got != 1 {
		t.Errorf("got %d orders, want 1", got)
	}
}

// Off this machine and without https a browser has no crypto.randomUUID.
func TestPage_makesKeysWhereTheBrowserDoesNot(t *testing.T) {
	pool, port := openShop(t, shop.Config{})
	b := newTab(t)
	b.run(chromedp.Navigate(fmt.Sprintf("http://%s:%d/", farAway, port)))
	b.waitFor(`isSecureContext === false && crypto.randomUUID === undefined`)
	b.run(chromedp.Click(chromedp.CSS("#guarded-order")))
	b.waitFor(fmt.Sprintf(hasEnd, "guarded"))
	const uuid4 = `select count(*) from idem.idempotency_keys
		where key ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'`
	if got := count(t, pool, uuid4); got != 1 {
		t.Errorf("got %d keys that are a UUID of version 4, want 1", got)
	}
}

// An order that got no answer is tried again by a person, under the same key.
func TestPage_triesAgainWithTheSameKey(t *testing.T) {
	pool, port := openShop(t, shop.Config{})
	b := newTab(t)
	b.run(chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/", port)))
	b.block("*://*:*/orders", "*://*:*/stats?*")
	b.click("guarded")
	b.waitFor(`document.querySelector("#guarded-status[data-state=failed]") !== null`)
	b.waitFor(`!document.querySelector("#stats-away").hidden`)
	if got := count(t, pool, guardedOrders); got != 0 {
		t.Fatalf("got %d orders while the shop was away, want 0", got)
	}
	b.block()
	b.run(chromedp.Click(chromedp.CSS("#guarded-again")))
	b.waitFor(fmt.Sprintf(hasEnd, "guarded"))
	b.waitFor(`document.querySelector("#guarded-again").hidden && document.querySelector("#stats-away").hidden`)
	b.waitFor(fmt.Sprintf(counted, "guarded.orders", 1))
	b.waitFor(fmt.Sprintf(counted, "guarded.clicks", 1))
	b.wantKeys("/orders", 1, 2)
}
