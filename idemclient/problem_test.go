package idemclient_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem/idemclient"
)

func TestProblemFrom_leavesTheBodyAsItWas(t *testing.T) {
	const mismatch = `{"status":409,"code":"key-mismatch","retryable":false,"safe_new_key":false}`
	long := `{"code":"key-mismatch","detail":"` + strings.Repeat("x", 70<<10) + `"}`
	for name, c := range map[string]struct {
		media, body string
		want        bool
	}{
		"a problem":         {"application/problem+json", mismatch, true},
		"with a parameter":  {"Application/Problem+JSON; charset=utf-8", mismatch, true},
		"other JSON":        {"application/json", mismatch, false},
		"no type":           {"", mismatch, false},
		"not JSON":          {"application/problem+json", "<html>", false},
		"a list":            {"application/problem+json", "[]", false},
		"longer than 64 KB": {"application/problem+json", long, false},
	} {
		resp := &http.Response{StatusCode: 409, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(strings.NewReader(c.body))}
		for range 2 {
			p, ok := idemclient.ProblemFrom(resp)
			if ok != c.want || ok && (p.Code != "key-mismatch" || p.Status != 409 || p.SafeNewKey) {
				t.Errorf("%s: got %+v %v, want %v", name, p, ok, c.want)
			}
		}
		if body, err := io.ReadAll(resp.Body); string(body) != c.body || err != nil {
			t.Errorf("%s: %d bytes of the body are left (%v), want all %d", name, len(body), err, len(c.body))
		}
	}
	if p, ok := idemclient.ProblemFrom(nil); ok {
		t.Errorf("no answer is the problem %+v", p)
	}
}

func TestProblemFrom_doesNotBelieveThatASentKeyIsMissing(t *testing.T) {
	s := newServer(t, problem(400, `{"code":"key-missing","retryable":false,"safe_new_key":true}`),
		problem(400, `{"code":"key-invalid","retryable":false,"safe_new_key":true}`))
	client := newClient(t, idemclient.Config{})
	for i, want := range []bool{false, true} {
		resp, _, err := post(t.Context(), client, s.URL, "b")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body = io.NopCloser(strings.NewReader(`{"code":"` + []string{"key-missing", "key-invalid"}[i] + `","safe_new_key":true}`))
		if p, ok := idemclient.ProblemFrom(resp); !ok || p.SafeNewKey != want {
			t.Errorf("got %+v, want safe_new_key %v", p, want)
		}
	}
}
