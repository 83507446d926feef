package shop_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/shop"
)

const articleOrder = `{"customer_id":123,"amount":1500}`

func TestOrders_articleExampleWorksAsItIsWritten(t *testing.T) {
	r := open(t, shop.Config{})
	key := []string{"Idempotency-Key", "4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77"}
	const want = `{"id":1,"customer_id":123,"amount":1500,"status":"new"}`

	first := r.must("POST", "/orders", articleOrder, key...)
	if first.status != 201 || first.body != want || first.header.Get("Location") != "/orders/1" {
		t.Errorf("first: got %d %s at %q, want 201 %s at /orders/1", first.status, first.body, first.header.Get("Location"), want)
	}
	if got := first.header.Get("Idempotent-Replayed"); got != "" {
		t.Errorf("first: Idempotent-Replayed is %q, want none", got)
	}
	again := r.must("POST", "/orders", articleOrder, key...)
	if again.status != 201 || again.body != want || again.header.Get("Idempotent-Replayed") != "true" ||
		again.header.Get("Location") != "/orders/1" || again.header.Get("Content-Type") != "application/json" {
		t.Errorf("repeat: got %d %s %v, want the first answer, marked", again.status, again.body, again.header)
	}
	other := r.must("POST", "/orders", `{"customer_id":123,"amount":1600}`, key...)
	if other.status != 409 || other.code(t) != "key-mismatch" {
		t.Errorf("other amount: got %d %s, want 409 key-mismatch", other.status, other.body)
	}
	r.wantStats(`{"orders":1,"unguarded_orders":0,"bookings":0,"payments":0,"bank_charges":null,"refunds":0,"receipts":1}`)
}

func TestOrders_profileChangesTheStatuses(t *testing.T) {
	r := open(t, shop.Config{Profile: idemhttp.IETF})
	r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k")
	if got := r.must("POST", "/orders", `{"customer_id":123,"amount":1}`, "Idempotency-Key", "k"); got.status != 422 {
		t.Errorf("mismatch: got %d, want 422", got.status)
	}
}

func TestOrders_refusesWhatIsNoOrder(t *testing.T) {
	r := open(t, shop.Config{})
	cases := []struct {
		name, body string
		status     int
		code       string
		says       string
	}{
		{"not JSON", `{"customer_id":123,`, 400, "body-malformed", "not valid JSON"},
		{"two values", articleOrder + articleOrder, 400, "body-malformed", "not valid JSON"},
		{"an array", `[1,2]`, 400, "body-malformed", "must be a JSON object"},
		{"unknown member", `{"customer_id":1,"amount":1,"price":2}`, 400, "body-malformed", `"price" is not known`},
		{"another case", `{"customer_id":1,"Amount":1}`, 400, "body-malformed", `"Amount" is not known`},
		{"member twice", `{"customer_id":1,"amount":1,"amount":2}`, 400, "body-malformed", `"amount" is there twice`},
		{"text for a number", `{"customer_id":1,"amount":"1500"}`, 400, "body-malformed", `"amount" has a value of the wrong type`},
		{"a fraction", `{"customer_id":1,"amount":15.5}`, 400, "body-malformed", `"amount"`},
		{"beyond int64", `{"customer_id":1,"amount":99999999999999999999}`, 400, "body-malformed", `"amount"`},
		{"no amount", `{"customer_id":1}`, 422, "order-invalid", "amount (in minor units) must be"},
		{"null", `{"customer_id":null,"amount":1}`, 422, "order-invalid", "customer_id must be"},
		{"negative", `{"customer_id":1,"amount":-1}`, 422, "order-invalid", "amount"},
		{"too much", `{"customer_id":1,"amount":1000000000001}`, 422, "order-invalid", "amount"},
		{"too long", `{"customer_id":1,"amount":1` + strings.Repeat(" ", 65<<10) + `}`, 413, "body-too-large", "65536"},
	}
	for _, c := range cases {
		for _, path := range []string{"/orders", "/unguarded/orders"} {
			t.Run(c.name+path, func(t *testing.T) {
				got := r.must("POST", path, c.body, "Idempotency-Key", "corrected")
				if got.status != c.status || got.code(t) != c.code || !strings.Contains(unescape(got.body), c.says) {
					t.Errorf("got %d %s, want %d %s that says %q", got.status, got.body, c.status, c.code, c.says)
				}
			})
		}
	}
	r.wantStats(`{"orders":0,"unguarded_orders":0,"bookings":0,"payments":0,"bank_charges":null,"refunds":0,"receipts":0}`)
	if got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "corrected"); got.status != 201 {
		t.Errorf("corrected order under the same key: got %d %s, want 201", got.status, got.body)
	}
}

func unescape(body string) string { return strings.ReplaceAll(body, `\"`, `"`) }

func TestOrders_refusesAnotherMediaType(t *testing.T) {
	r := open(t, shop.Config{})
	for _, media := range []string{"application/x-www-form-urlencoded", "text/plain", "not a type"} {
		got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "Content-Type", media)
		if got.status != 415 || got.code(t) != "media-type" {
			t.Errorf("%s: got %d %s, want 415", media, got.status, got.body)
		}
	}
	got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "Content-Type", "application/json; charset=utf-8")
	if got.status != 201 {
		t.Errorf("with a charset: got %d %s, want 201", got.status, got.body)
	}
}

func TestOrders_belongToTheirPrincipal(t *testing.T) {
	r := open(t, shop.Config{})
	const ann, bob = "Bearer demo-ann", "bearer demo-bob"
	made := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "Authorization", ann)
	where := made.header.Get("Location")
	if got := r.must("GET", where, "", "Authorization", ann); got.status != 200 || got.body != made.body {
		t.Errorf("the owner: got %d %s, want 200 %s", got.status, got.body, made.body)
	}
	for _, who := range []string{bob, "Bearer demo-guest"} {
		if got := r.must("GET", where, "", "Authorization", who); got.status != 404 || got.code(t) != "not-found" {
			t.Errorf("%s: got %d %s, want 404", who, got.status, got.body)
		}
	}
	for _, path := range []string{"/orders/0", "/orders/x", "/orders/99999999999999999999"} {
		if got := r.must("GET", path, ""); got.status != 404 || got.code(t) != "not-found" {
			t.Errorf("%s: got %d %s, want 404", path, got.status, got.body)
		}
	}
	same := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "Authorization", bob)
	if same.status != 201 || same.body == made.body || same.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another principal with the same key: got %d %s, want an order of their own", same.status, same.body)
	}
}

func TestPrincipal_refusesWhatIsNeitherGuestNorDemo(t *testing.T) {
	r := open(t, shop.Config{})
	for _, authorization := range []string{"", "Bearer", "Bearer demo-", "Bearer ann", "Basic demo-ann", "Bearer demo-a b",
		"Bearer demo-\u00e4", "Bearer demo-" + strings.Repeat("a", 65)} {
		for _, path := range []string{"/orders", "/bookings", "/unguarded/orders"} {
			got := r.must("POST", path, articleOrder, "Idempotency-Key", "k", "Authorization", authorization)
			if got.status != 401 || got.code(t) != "unauthenticated" {
				t.Errorf("%q at %s: got %d %s, want 401", authorization, path, got.status, got.body)
			}
		}
		if got := r.must("GET", "/orders/1", "", "Authorization", authorization); got.status != 401 {
			t.Errorf("%q: got %d, want 401", authorization, got.status)
		}
	}
	r.wantStats(`{"orders":0,"unguarded_orders":0,"bookings":0,"payments":0,"bank_charges":null,"refunds":0,"receipts":0}`)
}

func TestUnguardedOrders_repeatIsAnotherOrder(t *testing.T) {
	r := open(t, shop.Config{})
	for _, want := range []string{
		`{"id":1,"customer_id":123,"amount":1500,"status":"new"}`,
		`{"id":2,"customer_id":123,"amount":1500,"status":"new"}`,
	} {
		if got := r.must("POST", "/unguarded/orders", articleOrder, "Idempotency-Key", "k"); got.status != 201 || got.body != want {
			t.Errorf("got %d %s, want 201 %s", got.status, got.body, want)
		}
	}
	r.wantStats(`{"orders":0,"unguarded_orders":2,"bookings":0,"payments":0,"bank_charges":null,"refunds":0,"receipts":0}`)
	r.wantRows("idem.idempotency_keys", 0)
}
