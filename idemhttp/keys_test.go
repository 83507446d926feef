package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

const aUUID = "4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77"

func TestK1_quotedAndBareKeyAreOne(t *testing.T) {
	r, _ := ordersRig(t, idemhttp.Route{})
	first := r.send(post("/orders", "abc", body))
	r.want(first, 201, "")
	if quoted := r.send(post("/orders", `"abc"`, body)); quoted.body != first.body || !quoted.replayed() {
		t.Errorf(`"abc" got %d %q, want abc's answer`, quoted.status, quoted.body)
	}
	other := r.send(post("/orders", "ABC", body))
	r.want(other, 201, "")
	if other.replayed() || other.body == first.body {
		t.Errorf("ABC got abc's answer %q", other.body)
	}
	r.wantRows("select count(*) from orders", 2)
	r.wantRows("select count(*) from idem.idempotency_keys where key in ('abc', 'ABC')", 2)
}

// unqueried runs send and wants that no connection of the pool was taken.
func (r *rig) unqueried(send func() reply) reply {
	r.t.Helper()
	before := r.pool.Stat().AcquireCount()
	got := send()
	if after := r.pool.Stat().AcquireCount(); after != before {
		r.t.Errorf("the database was asked %d times, want never", after-before)
	}
	return got
}

func TestK2_invalidKeysAreRefusedBeforeTheDatabase(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{})
	r.want(r.send(post("/orders", strings.Repeat("k", 255), body)), 201, "") // the longest
	runs.Store(0)
	for name, value := range map[string]string{
		"256 bytes":            strings.Repeat("k", 256),
		"256 bytes in quotes":  `"` + strings.Repeat("k", 256) + `"`,
		"empty":                "",
		"empty in quotes":      `""`,
		"a space inside":       "a b",
		"a space in quotes":    `"a b"`,
		"a tab inside":         "a\tb",
		"a comma":              "a,b",
		"two in one line":      `"a", "b"`,
		"parameters":           `"a";p=1`,
		"a quote inside":       `a"b`,
		"non-ASCII":            "schlüssel",
		"non-ASCII in quotes":  `"schlüssel"`,
		"an unterminated one":  `"abc`,
		"an unknown escape":    `"a\bc"`,
		"an escape at the end": `"abc\`,
	} {
		t.Run(name, func(t *testing.T) {
			got := r.unqueried(func() reply { return r.send(post("/orders", "", body).with("Idempotency-Key", value)) })
			r.want(got, 400, "key-invalid")
			if !strings.Contains(got.body, `"safe_new_key":true`) || strings.Contains(got.body, value) && value != "" {
				t.Errorf("the problem forbids a new key or repeats the value: %s", got.body)
			}
		})
	}
	if runs.Load() != 0 {
		t.Errorf("the handler ran %d times", runs.Load())
	}
	r.wantRows("select count(*) from idem.idempotency_keys", 1)
}

func TestK2_twoKeysAreRefusedAndNoNewOneIsSafe(t *testing.T) {
	r := newRig(t, func(c *idemhttp.Config) { c.KeyHeaders = []string{"Idempotency-Key", "X-Idempotency-Key"} })
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	for name, s := range map[string]sending{
		"two lines":            post("/orders", "a", body).with("Idempotency-Key", "b"),
		"the same twice":       post("/orders", "a", body).with("Idempotency-Key", "a"),
		"the header and alias": post("/orders", "a", body).with("X-Idempotency-Key", "a"),
	} {
		t.Run(name, func(t *testing.T) {
			got := r.unqueried(func() reply { return r.send(s) })
			r.want(got, 400, "key-invalid")
			if !strings.Contains(got.body, `"safe_new_key":false`) {
				t.Errorf("the problem allows a new key: %s", got.body)
			}
		})
	}
	alias := r.send(post("/orders", "", body).with("X-Idempotency-Key", "a"))
	r.want(alias, 201, "")
	if again := r.send(post("/orders", "a", body)); again.body != alias.body || !again.replayed() {
		t.Errorf("the alias and the header are two keys: %d %q", again.status, again.body)
	}
	if runs.Load() != 1 {
		t.Errorf("the handler ran %d times, want once", runs.Load())
	}
}

func TestK2_controlBytesAreRefusedByTheServer(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{})
	for _, control := range []string{"\x00", "\x01", "\x1b", "\x7f"} {
		got := r.unqueried(func() reply {
			return r.wire("POST /orders HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: a" + control + "b\r\n" +
				"Content-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body)
		})
		r.want(got, 400, "")
	}
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
}

// formKey takes the key from a hidden field of a form.
func formKey(r *http.Request) []string {
	if r.ParseForm() != nil {
		return nil
	}
	return r.PostForm["idempotency_key"]
}

// formOrder is the handler behind an HTML form.
func formOrder(runs *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		_, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into orders (customer, amount) values (1, $1)", r.PostFormValue("amount"))
		if err != nil {
			http.Error(w, "database", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Location", "/orders/thanks")
		w.WriteHeader(http.StatusSeeOther)
	}
}

func submit(fields url.Values) sending {
	return post("/form", "", fields.Encode()).with("Content-Type", "application/x-www-form-urlencoded")
}

func formRig(t *testing.T) (*rig, *atomic.Int64) {
	r := newRig(t)
	runs := new(atomic.Int64)
	r.handle("/form", idemhttp.Route{KeyFrom: formKey}, formOrder(runs))
	r.serve()
	r.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r, runs
}

func TestK2_controlBytesInAFieldAreInvalid(t *testing.T) {
	r, runs := formRig(t)
	for _, key := range []string{"a\x00b", "\x01", "a\nb", "a\x7fb", "", strings.Repeat("k", 256), "ключ"} {
		got := r.unqueried(func() reply { return r.send(submit(url.Values{"idempotency_key": {key}, "amount": {"5"}})) })
		r.want(got, 400, "key-invalid")
	}
	field := submit(url.Values{"idempotency_key": {"k"}, "amount": {"5"}})
	r.want(r.unqueried(func() reply { return r.send(field.with("Idempotency-Key", "k")) }), 400, "key-invalid")
	r.want(r.unqueried(func() reply { return r.send(submit(url.Values{"amount": {"5"}})) }), 400, "key-missing")
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
}

func TestK3_onlyUUIDsWhereTheRouteSaysSo(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{KeyFormat: idemhttp.UUIDs})
	for _, key := range []string{"abc", aUUID + "0", aUUID[:35], strings.Replace(aUUID, "-", "0", 1), strings.Replace(aUUID, "4", "g", 1), "{" + aUUID[1:35] + "}"} {
		got := r.unqueried(func() reply { return r.send(post("/orders", key, body)) })
		r.want(got, 400, "key-invalid")
		if !strings.Contains(got.body, "UUID") || !strings.Contains(got.body, `"safe_new_key":false`) {
			t.Errorf("the problem does not name the format or allows a new key: %s", got.body)
		}
	}
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
	r.want(r.send(post("/orders", aUUID, body)), 201, "")
	r.want(r.send(post("/orders", `"`+strings.ToUpper(aUUID)+`"`, body)), 201, "")
}

func TestK4_aKeyOnAGetDoesNothing(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if _, err := idem.TxFrom(req.Context()); err == nil {
			t.Error("a GET was given a transaction")
		}
		_, _ = fmt.Fprint(w, runs.Add(1))
	})
	r.serve()
	for _, method := range []string{"GET", "GET", "HEAD", "PUT", "DELETE", "OPTIONS"} {
		got := r.unqueried(func() reply { return r.send(sending{method: method, path: "/orders", key: "k"}) })
		r.want(got, 200, "")
		if got.replayed() {
			t.Errorf("%s was replayed", method)
		}
	}
	if runs.Load() != 6 {
		t.Errorf("the handler ran %d times, want 6", runs.Load())
	}
	r.wantRows("select count(*) from idem.idempotency_keys", 0)
}

func TestK5_optionalKeyRunsUnguardedWithoutOne(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{KeyOptional: true})
	for range 2 {
		got := r.send(post("/orders", "", body))
		r.want(got, 201, "")
		if status := got.header.Get("Idempotency-Status"); status != "unguarded" || got.replayed() {
			t.Errorf("Idempotency-Status %q, replayed %v; want unguarded, false", status, got.replayed())
		}
	}
	r.wantRows("select count(*) from orders", 2)
	r.wantRows("select count(*) from idem.idempotency_keys", 0)
	for range 2 {
		got := r.send(post("/orders", "k", body))
		r.want(got, 201, "")
		if status, ok := got.header["Idempotency-Status"]; ok {
			t.Errorf("Idempotency-Status %q with a key, want none", status)
		}
	}
	r.wantRows("select count(*) from orders", 3)
	r.want(r.send(post("/orders", "", body).with("Idempotency-Key", "")), 400, "key-invalid") // a bad key is not none
	if n := runs.Load(); n != 3 {
		t.Errorf("the handler ran %d times, want 3", n)
	}
}

func TestK5_unguardedRefusalIsRolledBack(t *testing.T) {
	for _, status := range []int{409, 422, 500} {
		r := newRig(t)
		r.handle("/orders", idemhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, req *http.Request) {
			if _, err := idem.Tx(req.Context()).Exec(req.Context(), "insert into orders (customer, amount) values (1, 1)"); err != nil {
				t.Error(err)
			}
			w.WriteHeader(status)
		})
		r.serve()
		got := r.send(post("/orders", "", body))
		r.want(got, status, "")
		if got.header.Get("Idempotency-Status") != "unguarded" {
			t.Errorf("%d does not say unguarded", status)
		}
		r.wantRows("select count(*) from orders", 0)
	}
}

func TestK6_doubleClickMakesOneOrder(t *testing.T) {
	r, runs := formRig(t)
	form := submit(url.Values{"idempotency_key": {aUUID}, "amount": {"5"}})
	for _, got := range append(r.together(2, form), r.send(form)) {
		r.want(got, 303, "")
		if location := got.header.Get("Location"); location != "/orders/thanks" {
			t.Errorf("Location %q, want /orders/thanks", location)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
	r.wantRows("select count(*) from orders where amount = 5", 1)
}
