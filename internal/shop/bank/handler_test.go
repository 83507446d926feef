package bank_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/shop/bank"
)

// send makes one request as curl would; header holds names and values in turn.
func (r *running) send(method, path, body string, header ...string) (status int, answer string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Close = true
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	w, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return w.StatusCode, string(got)
}

func TestHandler_refusesWhatIsNoCharge(t *testing.T) {
	const good = `{"reference":"r","amount":1,"card":"tok_ok"}`
	long := strings.Repeat("r", 256)
	b := start(t, bank.Config{})
	for name, test := range map[string]struct {
		method, path, body, key, media string
		status                         int
		code                           string
	}{
		"no key":         {"POST", "/charges", good, "", "application/json", 400, "key-missing"},
		"a long key":     {"POST", "/charges", good, long, "application/json", 400, "key-invalid"},
		"a key in words": {"POST", "/charges", good, "a b", "application/json", 400, "key-invalid"},
		"no media type":  {"POST", "/charges", good, "k", "text/plain", 415, "media-type"},
		"no body":        {"POST", "/charges", "", "k", "application/json", 400, "body-malformed"},
		"no object":      {"POST", "/charges", "[]", "k", "application/json", 400, "body-malformed"},
		"two values":     {"POST", "/charges", good + good, "k", "application/json", 400, "body-malformed"},
		"a member twice": {"POST", "/charges", `{"amount":1,` + good[1:], "k", "application/json", 400, "body-malformed"},
		"another member": {"POST", "/charges", `{"tip":1,` + good[1:], "k", "application/json", 400, "body-malformed"},
		"half a cent":    {"POST", "/charges", strings.Replace(good, "1", "1.5", 1), "k", "application/json", 400, "body-malformed"},
		"too large":      {"POST", "/charges", good + strings.Repeat(" ", 4096), "k", "application/json", 413, "body-too-large"},
		"long reference": {"POST", "/charges", strings.Replace(good, `"r"`, `"`+long+`"`, 1), "k", "application/json", 422, "charge-invalid"},
		"unknown card":   {"POST", "/charges", strings.Replace(good, "tok_ok", "tok_not", 1), "k", "application/json", 422, "charge-invalid"},
		"no query":       {"GET", "/charges", "", "", "", 400, "query-invalid"},
		"two queries":    {"GET", "/charges?key=k&reference=r", "", "", "", 400, "query-invalid"},
		"another query":  {"GET", "/charges?card=tok_ok", "", "", "", 400, "query-invalid"},
		"another method": {"DELETE", "/charges", "", "", "", 405, "method-not-allowed"},
		"another path":   {"GET", "/loans", "", "", "", 404, "not-found"},
		"wrong faults":   {"POST", "/faults", `{"lose_replies":-1}`, "", "application/json", 400, "faults-invalid"},
		"other faults":   {"POST", "/faults", `{"lose":1}`, "", "application/json", 400, "body-malformed"},
	} {
		header := []string{"Content-Type", test.media}
		if test.key != "" {
			header = append(header, "Idempotency-Key", test.key)
		}
		status, body := b.send(test.method, test.path, test.body, header...)
		var got struct {
			Code, Detail string
			Charged      *bool
		}
		err := json.Unmarshal([]byte(body), &got)
		if err != nil || status != test.status || got.Code != test.code || got.Detail == "" {
			t.Errorf("%s: got %d %s, want %d %s", name, status, body, test.status, test.code)
		}
		if says := got.Charged != nil && !*got.Charged; says != (test.method+test.path == "POST/charges") {
			t.Errorf("%s: got %s, want a word on money where one was meant to be charged", name, body)
		}
	}
	if status, body := b.send("POST", "/charges", good, "Content-Type", "application/json", "Idempotency-Key", "a", "Idempotency-Key", "b"); status != 400 {
		t.Errorf("two keys: got %d %s, want 400", status, body)
	}
	b.wantSummary(bank.Summary{})
}

func TestHandler_answers(t *testing.T) {
	const keyless = `{"reference":"r","amount":1,"card":"tok_keyless"}`
	b := start(t, bank.Config{})
	if status, body := b.send("POST", "/charges", keyless, "Content-Type", "application/json"); status != 201 {
		t.Errorf("a card that ignores keys, without a key: got %d %s, want 201", status, body)
	}
	kept := b.must("k", paying("tok_ok"))
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ method, path, body, want string }{
		{"GET", "/charges?key=k", "", `{"charges":[` + string(text) + `]}`},
		{"GET", "/charges?key=another", "", `{"charges":[]}`},
		{"GET", "/charges?key=", "", `{"charges":[]}`},
		{"GET", "/charges?reference=charge%3Apayment%3A1", "", `{"charges":[` + string(text) + `]}`},
		{"GET", "/refunds?reference=r", "", `{"refunds":[]}`},
		{"GET", "/summary", "", `{"charges":2,"declined":0,"amount":1501,"doubled":0,"doubled_keys":0,"refunds":0,"returned":0,"refunded_twice":0}`},
		{"GET", "/healthz", "", `{"status":"alive"}`},
		{"POST", "/faults", `{"delay_after_ms":1}`, `{"delay_before_ms":0,"delay_after_ms":1,"lose_replies":0}`},
		{"POST", "/charges", `{"reference":"charge:payment:1","amount":1500,"card":"tok_ok"}`, string(text)},
	} {
		if status, body := b.send(test.method, test.path, test.body, "Content-Type", "application/json", "Idempotency-Key", "k"); status != 200 || body != test.want {
			t.Errorf("%s %s: got %d %s, want 200 %s", test.method, test.path, status, body, test.want)
		}
	}
}
