package idemclient

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "1", "120", " 3 ", "-1", "1.5", "١", "99999999999999999999", "9223372036854775807",
		"Fri, 31 Dec 2027 23:59:59 GMT", "Friday, 31-Dec-27 23:59:59 GMT", "Fri Dec 31 23:59:59 2027", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(seed, "Fri, 31 Dec 2027 23:59:30 GMT")
		f.Add(seed, "")
	}
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		got, ok := retryAfter(h, now)
		if got < 0 || got > maxRetryAfter {
			t.Errorf("%q, %q: got %v, want 0 to %v", value, date, got, maxRetryAfter)
		}
		if !ok && got != 0 {
			t.Errorf("%q, %q: got %v of an answer that does not ask", value, date, got)
		}
		_, err := http.ParseTime(strings.TrimSpace(value))
		if number := digits(strings.TrimSpace(value)); ok != (number || err == nil) {
			t.Errorf("%q: got %v, want yes for a number or a date only", value, ok)
		}
	})
}

func FuzzProblem(f *testing.F) {
	for _, seed := range []string{"", "null", "{}", "[]", `{"code":"in-flight","retryable":true,"safe_new_key":false}`,
		`{"type":"https://example.com/docs#key-mismatch","status":409}`, `{"type":"about:blank"}`, `{"retryable":null,"safe_new_key":"yes"}`,
		`{"code":"a b\n"}`, `{"code":"x","code":7}`, `{"retryable":true}{}`, strings.Repeat("[", 20000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, ok := parseProblem(data, 409)
		if ok != (p != nil) {
			t.Fatalf("got %v %v", p, ok)
		}
		if !ok {
			return
		}
		if p.Status != 409 || p.Retryable && !p.retryableSaid {
			t.Errorf("got %+v", p)
		}
		text := p.Error()
		if len(text) > 200 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("the error is %q", text)
		}
		if p.SafeNewKey && !strings.Contains(string(data), "true") {
			t.Errorf("%q: a new key is said to be safe", data)
		}
	})
}

func TestProblem_readsTheGuardsMembers(t *testing.T) {
	for _, c := range []struct {
		data string
		want Problem
	}{
		{`{"type":"https://example.com/docs/http.md#key-invalid","title":"T","status":400,"detail":"D","code":"key-invalid","retryable":false,"safe_new_key":true}`,
			Problem{Type: "https://example.com/docs/http.md#key-invalid", Title: "T", Status: 400, Detail: "D", Code: "key-invalid", SafeNewKey: true, retryableSaid: true}},
		{`{"type":"https://example.com/probs/out-of-credit","status":"x","retryable":"true"}`,
			Problem{Type: "https://example.com/probs/out-of-credit", Status: 400, Code: "out-of-credit"}},
		{`{"type":"about:blank","retryable":true}`,
			Problem{Type: "about:blank", Status: 400, Retryable: true, retryableSaid: true}},
		{`{"code":"<script>","safe_new_key":1}`, Problem{Status: 400}},
		{`{}`, Problem{Status: 400}},
	} {
		got, ok := parseProblem([]byte(c.data), 400)
		if !ok || *got != c.want {
			t.Errorf("%s:\n got %+v %v\nwant %+v", c.data, got, ok, c.want)
		}
	}
}

func TestAge_isTheTimeSinceMinting(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if got := age(key, time.Now().Add(time.Hour)); got < 59*time.Minute || got > 61*time.Minute {
		t.Errorf("got %v, want an hour", got)
	}
	for _, other := range []string{"order-7", "4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77"} {
		if got := age(other, time.Now()); got != 0 {
			t.Errorf("%s: got %v, want 0: it does not tell", other, got)
		}
	}
}

func TestBareKey_undoesTheQuotes(t *testing.T) {
	for _, key := range []string{"k", `a"b`, `a\b`, `\"`, `\\"`, `",`, "01890a5d-ac96-774b-bcce-b302099a8057"} {
		for _, quoted := range []bool{false, true} {
			if value := headerValue(key, quoted); bareKey(value) != key {
				t.Errorf("%s travels as %s and is read as %s", key, value, bareKey(value))
			}
		}
	}
}
