package browser

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// limit bounds one test's browser, start and end included.
const limit = time.Minute

// patience bounds one wait for something that the page is about to show.
const patience = 20 * time.Second

// farAway is a name that leads to this machine and that the browser does not
// know to be this machine.
const farAway = "shop.test"

// findChromium returns the browser's program.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium on this machine; scripts/test-browser installs it")
	return ""
}

// tab is a browser with one page, and what it did so far.
type tab struct {
	context.Context
	t   *testing.T
	mu  sync.Mutex
	log []request
	bad []string // what a page without faults does not have
}

// request is one that the page made, with the status of its answer; 0 if there
// was none.
type request struct {
	id               network.RequestID
	method, url, key string
	status           int64
}

// newTab starts a browser with an empty profile. It is ended with the test,
// which fails if the page had an error or went anywhere but to the shop.
func newTab(t *testing.T) *tab {
	t.Helper()
	limited, expire := context.WithTimeout(context.Background(), limit)
	allocator, end := chromedp.NewExecAllocator(limited,
		chromedp.ExecPath(findChromium(t)),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.NoSandbox, // it may be root who runs this, and it opens nothing but the shop
		chromedp.DisableGPU,
		chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("host-resolver-rules", "MAP "+farAway+" 127.0.0.1"),
	)
	ctx, closeTab := chromedp.NewContext(allocator)
	b := &tab{Context: ctx, t: t}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("the browser did not end well: %v", err)
		}
		closeTab()
		end()
		expire()
		b.wantNoFault()
	})
	b.run() // starts it
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func exceptionText(e *runtime.ExceptionDetails) string {
	if e.Exception != nil && e.Exception.Description != "" {
		return e.Exception.Description
	}
	return e.Text
}

// note keeps what the page does.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		key, _ := e.Request.Headers["Idempotency-Key"].(string)
		b.log = append(b.log, request{id: e.RequestID, method: e.Request.Method, url: e.Request.URL, key: key})
	case *network.EventResponseReceived:
		for i := range b.log {
			if b.log[i].id == e.RequestID {
				b.log[i].status = e.Response.Status
			}
		}
	case *runtime.EventExceptionThrown:
		b.bad = append(b.bad, exceptionText(e.ExceptionDetails))
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || e.Entry.Source == log.EntrySourceViolation || e.Entry.Source == log.EntrySourceJavascript {
			b.bad = append(b.bad, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	}
}

// requests returns what the page sent to paths that end like this.
func (b *tab) requests(method, path string) (found []request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.log {
		if r.method == method && strings.HasSuffix(r.url, path) {
			found = append(found, r)
		}
	}
	return found
}

func (b *tab) wantNoFault() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.bad {
		b.t.Errorf("the page: %s", fault)
	}
	for _, r := range b.log {
		if !strings.HasPrefix(r.url, "http://127.0.0.1:") && !strings.HasPrefix(r.url, "http://"+farAway+":") {
			b.t.Errorf("the page asked for %s, which is not the shop's", r.url)
		}
	}
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
}

// block cuts the page off from addresses that match a pattern, and from no others.
func (b *tab) block(patterns ...string) {
	b.t.Helper()
	var blocked []*network.BlockPattern
	for _, pattern := range patterns {
		blocked = append(blocked, &network.BlockPattern{URLPattern: pattern, Block: true})
	}
	if _, err := chromedp.Call(b, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: blocked}); err != nil {
		b.t.Fatal(err)
	}
}

// waitFor waits until an expression of the page is true.
func (b *tab) waitFor(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b, chromedp.Poll[chromedp.Void](expression,
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		text, _ := chromedp.Run(b, chromedp.Text(chromedp.CSS("main")))
		b.t.Fatalf("waited for %s: %v; the page says:\n%s", expression, err, text)
	}
}
