package shop_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/shop"
)

// browser is the Accept header of one.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestPage_isForBrowsersAndTheListIsForTheRest(t *testing.T) {
	r := open(t, shop.Config{})
	cases := []struct {
		accept string
		page   bool
	}{
		{browser, true}, {"text/html", true}, {"application/json, TEXT/HTML;q=0.1", true},
		{"*/*", false}, {"", false}, {"text/plain", false}, {"text/html;q=0", false}, {"text/html;q=0.000", false}, {"text/htmlx", false},
	}
	for _, c := range cases {
		got := r.must("GET", "/", "", "Accept", c.accept)
		want := "text/plain; charset=utf-8"
		if c.page {
			want = "text/html; charset=utf-8"
		}
		if got.status != 200 || got.header.Get("Content-Type") != want || got.header.Get("Vary") != "Accept" {
			t.Errorf("Accept %q: got %d %q, Vary %q; want 200 %q that varies by Accept", c.accept, got.status,
				got.header.Get("Content-Type"), got.header.Get("Vary"), want)
		}
		if !c.page && !strings.Contains(got.body, "POST /orders") {
			t.Errorf("Accept %q: got %s, want the endpoints", c.accept, got.body)
		}
	}
}

func TestPage_saysWhetherTheShopObeysFaults(t *testing.T) {
	for _, faults := range []bool{false, true} {
		r := open(t, shop.Config{Faults: faults})
		body := r.must("GET", "/", "", "Accept", browser).body
		if got := strings.Contains(body, `data-faults="true"`); got != faults {
			t.Errorf("a shop with faults %t: got data-faults %t", faults, got)
		}
	}
}

// links are the files that the page or one of its files names.
func links(t *testing.T, body string) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"|from "\./([^"]*)"|url\(([^)]*)\)`).FindAllStringSubmatch(body, -1) {
		switch {
		case m[1] != "":
			names = append(names, "/"+m[1])
		case m[2] != "":
			names = append(names, "/page/"+m[2])
		default:
			t.Errorf("the page names a file as %s", m[0])
		}
	}
	return names
}

func TestPage_loadsOnlyWhatTheShopServes(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	types := map[string]string{"": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
	outside := regexp.MustCompile(`(?i)[a-z]+:?//[a-z]|@import|\son[a-z]+=|style=|<style|<script>|innerHTML|eval\(`)
	seen := map[string]bool{}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if seen[path] {
			continue
		}
		seen[path] = true
		got := r.must("GET", path, "", "Accept", browser)
		_, extension, _ := strings.Cut(path, ".")
		if want := types[extension]; got.status != 200 || got.header.Get("Content-Type") != want {
			t.Errorf("%s: got %d %q, want 200 %q", path, got.status, got.header.Get("Content-Type"), want)
		}
		policy := got.header.Get("Content-Security-Policy")
		if want := "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "; !strings.HasPrefix(policy, want) {
			t.Errorf("%s: got Content-Security-Policy %q, want %q and more", path, policy, want)
		}
		if got := got.header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: got X-Content-Type-Options %q, want nosniff", path, got)
		}
		if found := outside.FindString(got.body); found != "" {
			t.Errorf("%s has %q, which leads out of the shop or past its policy", path, found)
		}
		todo = append(todo, links(t, got.body)...)
	}
	if len(seen) < 8 {
		t.Errorf("got only %v, want the page, its style and all of its scripts", seen)
	}
}

func TestPage_fileThatIsStillTheSameIsNotSentAgain(t *testing.T) {
	r := open(t, shop.Config{})
	first := r.must("GET", "/page/page.js", "")
	again := r.must("GET", "/page/page.js", "", "If-None-Match", first.header.Get("Etag"))
	if first.status != 200 || again.status != 304 || again.body != "" || first.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("got %d, then %d with %d bytes; want 200, then 304 with none", first.status, again.status, len(again.body))
	}
	for _, path := range []string{"/page/", "/page/page.html", "/page/nothing.js", "/page/../sql/stats.sql"} {
		if got := r.must("GET", path, ""); got.status != 404 {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
}

func TestStats_countTheDoublesOfARangeOfCustomers(t *testing.T) {
	r := open(t, shop.Config{})
	for _, key := range []string{"a", "a", "b"} { // two intents of one customer: one of them is a double
		r.must("POST", "/orders", `{"customer_id":100,"amount":1}`, "Idempotency-Key", key)
	}
	for _, customer := range []string{"99", "100", "100", "100", "199", "200"} {
		r.must("POST", "/unguarded/orders", `{"customer_id":`+customer+`,"amount":1}`)
	}
	got := r.must("GET", "/stats?customers=100-199", "")
	want := `{"orders":2,"double_orders":1,"unguarded_orders":4,"unguarded_double_orders":2}`
	if got.status != 200 || got.body != want || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %s, want 200 %s", got.status, got.body, want)
	}
	for _, text := range []string{"1", "a-b", "0-1", "2-1", "-1-1", "1-9007199254740992", "1-2-3"} {
		if got := r.must("GET", "/stats?customers="+text, ""); got.status != 400 || got.code(t) != "query-invalid" {
			t.Errorf("%q: got %d %s, want 400 query-invalid", text, got.status, got.body)
		}
	}
}
