package idemhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

// echo answers with the body it was given, and counts.
func echo(runs *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}
}

// echoRig guards every POST below / with one route.
func echoRig(t *testing.T, route idemhttp.Route) (*rig, *atomic.Int64) {
	r := newRig(t)
	runs := new(atomic.Int64)
	r.handle("/", route, echo(runs))
	r.serve()
	return r, runs
}

// same sends other under the key of first and wants a replay; differs wants a
// mismatch. Every call has a key of its own.
func (r *rig) same(key string, first, other sending) {
	r.t.Helper()
	r.compare(key, first, other, true)
}
func (r *rig) differs(key string, first, other sending) {
	r.t.Helper()
	r.compare(key, first, other, false)
}

func (r *rig) compare(key string, first, other sending, same bool) {
	r.t.Helper()
	first.key, other.key = key, key
	original := r.send(first)
	r.want(original, 201, "")
	got := r.send(other)
	if !same {
		r.want(got, 409, "key-mismatch")
		return
	}
	r.want(got, 201, "")
	if !got.replayed() || got.body != original.body {
		r.t.Errorf("%q after %q got %q, replayed %v", other.body, first.body, got.body, got.replayed())
	}
}

// spellings are pairs of one JSON value written in two ways.
var spellings = [][2]string{
	{`{"a":1,"b":2}`, `{"b":2,"a":1}`},
	{`{"a":1,"b":2}`, "{ \"a\": 1,\n\t\"b\": 2 }\r\n"},
	{`{"a":{"x":[1,{"p":1,"q":2}],"y":2}}`, `{"a":{"y":2,"x":[1,{"q":2,"p":1}]}}`},
	{`{"a":"\u00e9\/"}`, `{"a":"é/"}`},
	{`[1]`, `[1.0]`}, {`[1]`, `[1e0]`}, {`[100]`, `[1E+2]`}, {`[0.5]`, `[5e-1]`}, {`[0]`, `[-0]`},
	{`[9007199254740992]`, `[9007199254740992.0]`},
}

func TestF1_rawModeKeepsSpellingsApart(t *testing.T) {
	r, runs := echoRig(t, idemhttp.Route{})
	for i, pair := range spellings {
		r.differs("raw"+string(rune('a'+i)), post("/", "", pair[0]), post("/", "", pair[1]))
	}
	if n := runs.Load(); int(n) != len(spellings) {
		t.Errorf("the handler ran %d times, want %d", n, len(spellings))
	}
}

func TestF1_canonicalJSONMakesSpellingsOne(t *testing.T) {
	r, runs := echoRig(t, idemhttp.Route{CanonicalJSON: true})
	for i, pair := range spellings {
		r.same("json"+string(rune('a'+i)), post("/", "", pair[0]), post("/", "", pair[1]))
	}
	patch := post("/", "", `{"a":1,"b":2}`).with("Content-Type", "application/merge-patch+json")
	reordered := post("/", "", `{"b":2,"a":1}`).with("Content-Type", "application/merge-patch+json; charset=utf-8")
	r.same("suffix", patch, reordered)
	for i, pair := range [][2]string{{`{"a":1}`, `{"a":"1"}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"a":null}`, `{}`}, {`{"a":1}`, `{"A":1}`}, {`[1]`, `[1.5]`}} {
		r.differs("other"+string(rune('a'+i)), post("/", "", pair[0]), post("/", "", pair[1]))
	}
	text := post("/", "", `{"a":1}`).with("Content-Type", "text/plain")
	spaced := post("/", "", `{"a": 1}`).with("Content-Type", "text/plain")
	r.differs("text", text, spaced) // what is not JSON is compared byte for byte
	if n := int(runs.Load()); n != len(spellings)+7 {
		t.Errorf("the handler ran %d times, want %d", n, len(spellings)+7)
	}
}

func TestF2_rawModeKeepsNumbersApart(t *testing.T) {
	r, _ := echoRig(t, idemhttp.Route{})
	for i, pair := range [][2]string{{"1", "1.0"}, {"1", "1e0"}, {"1.0", "1e0"}, {"9007199254740992", "9007199254740993"}, {"0.1", "0.10"}, {"0", "-0"}} {
		r.differs("n"+string(rune('a'+i)), post("/", "", pair[0]), post("/", "", pair[1]))
	}
}

func TestF2_canonicalModeRefusesWhatItCannotKeepExactly(t *testing.T) {
	r, runs := echoRig(t, idemhttp.Route{CanonicalJSON: true})
	for _, json := range []string{"9007199254740993", "-9007199254740993", "18446744073709551615", "0.1000000000000000055", "1e400", "-1e999999999999", "1e-400",
		`{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, "{", "", "1 2", `"\ud800"`, "\"\xff\"", "NaN", "[1,]", `{"n":[{"m":9007199254740993}]}`} {
		got := r.unqueried(func() reply { return r.send(post("/", "k", json)) })
		r.want(got, 400, "body-invalid")
		if !strings.Contains(got.body, `"safe_new_key":false`) || strings.Contains(got.body, "9007199254740993") {
			t.Errorf("the problem allows a new key or repeats the body: %s", got.body)
		}
	}
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
	r.want(r.send(post("/", "k", `[9007199254740992,0.1,1e23,5e-324]`)), 201, "") // the key was free, and these are exact
}

func TestF3_movedBoundariesAreAnotherRequest(t *testing.T) {
	r, _ := echoRig(t, idemhttp.Route{FingerprintHeaders: []string{"Api-Version", "Currency"}})
	plain := func(path, body string) sending { return post(path, "", body).with("Content-Type", "a/b") }
	for name, pair := range map[string][2]sending{
		"path-query":    {plain("/a?bc", "x"), plain("/ab?c", "x")},
		"query-path":    {plain("/ab", "x"), plain("/a?b", "x")},
		"query-body":    {plain("/a?b=", "c"), plain("/a?b=c", "")},
		"path-body":     {plain("/a", "bc"), plain("/ab", "c")},
		"escaped-slash": {plain("/a%2Fb", "x"), plain("/a/b", "x")},
		"type-body":     {post("/a", "", "/cx").with("Content-Type", "a/b"), post("/a", "", "x").with("Content-Type", "a/b/c")},
		"encoding-body": {plain("/a", "x").with("Content-Encoding", "id"), plain("/a", "idx")},
		"encoding":      {plain("/a", "x").with("Content-Encoding", "gzip"), plain("/a", "x").with("Content-Encoding", "br")},
		"media-type":    {plain("/a", "x"), post("/a", "", "x").with("Content-Type", "a/c")},
		"header-header": {plain("/a", "x").with("Api-Version", "1"), plain("/a", "x").with("Currency", "1")},
		"header-value":  {plain("/a", "x").with("Api-Version", "1"), plain("/a", "x").with("Api-Version", "2")},
		"header-lines":  {plain("/a", "x").with("Api-Version", "1").with("Api-Version", "2"), plain("/a", "x").with("Api-Version", "12")},
		"header-absent": {plain("/a", "x").with("Api-Version", ""), plain("/a", "x")},
	} {
		t.Run(name, func(t *testing.T) { r.differs(name, pair[0], pair[1]) })
	}
	r.same("unnamed", plain("/a", "x").with("User-Agent", "one"), plain("/a", "x").with("User-Agent", "two").with("X-Request-Id", "7"))
	r.same("charset", post("/a", "", "x").with("Content-Type", "text/plain"), post("/a", "", "x").with("Content-Type", "Text/Plain; charset=utf-8"))
}

func TestF3_aFunctionOfTheProgramsOwnDecides(t *testing.T) {
	r, _ := echoRig(t, idemhttp.Route{Fingerprint: func(req *http.Request, body []byte) ([]byte, error) {
		whole, err := io.ReadAll(req.Body)
		if err != nil || !bytes.Equal(whole, body) {
			t.Errorf("the request's body is %q, %v; want %q", whole, err, body)
		}
		amount, _, ok := bytes.Cut(body, []byte(" "))
		if !ok {
			return nil, errors.New("send an amount and a note")
		}
		amount = bytes.Clone(amount)
		clear(body) // it is the function's own copy
		return amount, nil
	}})
	r.same("note", post("/a?x", "", "15 first"), post("/a?y", "", "15 second"))
	r.differs("amount", post("/a", "", "15 first"), post("/a", "", "16 first"))
	r.differs("path", post("/a", "", "15 first"), post("/b", "", "15 first"))
	r.want(r.unqueried(func() reply { return r.send(post("/a", "k", "15")) }), 400, "body-invalid")
}

// A route may change its format while keys are remembered: what is stored in
// the older one stays comparable.
func TestF3_anOlderFormatStaysComparable(t *testing.T) {
	raw, _ := echoRig(t, idemhttp.Route{})
	var runs atomic.Int64
	canonical := rigOn(t, raw.pool)
	canonical.handle("/", idemhttp.Route{CanonicalJSON: true}, echo(&runs))
	canonical.serve()
	first, spaced := post("/", "raw", `{"a":1}`), post("/", "raw", `{"a": 1}`)
	raw.want(raw.send(first), 201, "")
	if again := canonical.send(first); !again.replayed() {
		t.Errorf("a raw fingerprint is not known to the canonical route: %d %s", again.status, again.body)
	}
	canonical.want(canonical.send(spaced), 409, "key-mismatch")

	first.key, spaced.key = "json", "json"
	canonical.want(canonical.send(first), 201, "")
	if again := raw.send(spaced); !again.replayed() {
		t.Errorf("a canonical fingerprint is not known to the raw route: %d %s", again.status, again.body)
	}
	raw.want(raw.send(post("/", "json", `{"a":2}`)), 409, "key-mismatch")
	raw.want(raw.send(post("/", "json", `{"a":`)), 409, "key-mismatch") // not comparable is not the same
}

func TestF4_theLastByteOfTheLargestBodyCounts(t *testing.T) {
	r, runs := echoRig(t, idemhttp.Route{})
	largest := strings.Repeat("x", idemhttp.DefaultMaxBody-1)
	r.same("whole", post("/", "", largest+"y"), post("/", "", largest+"y"))
	r.differs("last", post("/", "", largest+"y"), post("/", "", largest+"z"))
	r.differs("first", post("/", "", "y"+largest), post("/", "", "z"+largest))
	r.differs("length", post("/", "", largest+"y"), post("/", "", largest))
	runs.Store(0)
	r.want(r.unqueried(func() reply { return r.send(post("/", "k", largest+"yz")) }), 413, "body-too-large")
	r.want(r.unqueried(func() reply { return r.chunked("k", largest+"yz") }), 413, "body-too-large")
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
	got := r.chunked("last", largest+"y")
	if !got.replayed() {
		t.Errorf("the same body in chunks is another request: %d %s", got.status, got.problem())
	}
}

// chunked sends a JSON body without saying how long it is.
func (r *rig) chunked(key, body string) reply {
	r.t.Helper()
	reader := io.MultiReader(strings.NewReader(body)) // hides its length
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, r.server.URL+"/", reader)
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := r.server.Client().Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(answer), err: err}
}
