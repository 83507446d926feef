package idemhttp_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

// comparable is a reply's header without what differs between any two replies.
func comparable(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Date")
	h.Del("Idempotent-Replayed")
	return h
}

func sameHeader(a, b http.Header) bool {
	return maps.EqualFunc(comparable(a), comparable(b), slices.Equal[[]string])
}

func TestP1_everyBodyIsReplayedByteForByte(t *testing.T) {
	for name, c := range map[string]struct {
		status            int
		contentType, body string
	}{
		"204":                  {status: 204},
		"201 without a body":   {status: 201},
		"200 without a body":   {status: 200, contentType: "text/plain"},
		"303 without a body":   {status: 303},
		"zero bytes":           {status: 200, contentType: "application/octet-stream", body: "a\x00b\x00\x00"},
		"only a zero byte":     {status: 201, contentType: "application/octet-stream", body: "\x00"},
		"not UTF-8":            {status: 201, contentType: "text/plain; charset=latin1", body: "gr\xfc\xdfe \xff\xfe"},
		"type sniffed":         {status: 201, body: "<html><p>hello"},
		"64 KiB of every byte": {status: 201, contentType: "image/png", body: strings.Repeat(everyByte(), 256)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var runs atomic.Int64
			r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				if c.contentType != "" {
					w.Header().Set("Content-Type", c.contentType)
				}
				w.WriteHeader(c.status)
				for part := range strings.SplitSeq(c.body, "\x80") { // in several writes
					_, _ = w.Write([]byte(part))
				}
			})
			r.serve()
			r.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

			first, second := r.send(post("/x", "k", "")), r.send(post("/x", "k", ""))
			r.want(first, c.status, "")
			r.want(second, c.status, "")
			if want := strings.ReplaceAll(c.body, "\x80", ""); first.body != want || second.body != want {
				t.Errorf("bodies: first %q, repeat %q, want %q", first.body, second.body, want)
			}
			if !sameHeader(first.header, second.header) {
				t.Errorf("headers: first %v, repeat %v", first.header, second.header)
			}
			if first.replayed() || !second.replayed() || runs.Load() != 1 {
				t.Errorf("replayed %v and %v after %d runs, want false and true after 1", first.replayed(), second.replayed(), runs.Load())
			}
		})
	}
}

func everyByte() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}

func TestP2_onlyTheAnswersOwnHeadersComeBack(t *testing.T) {
	r := newRig(t, func(c *idemhttp.Config) { c.ReplayHeaders = []string{"x-invoice"} })
	kept := http.Header{
		"Content-Type": {"application/json"}, "Content-Language": {"de"}, "Location": {"/orders/7"}, "Etag": {`"v1"`},
		"Link":                {"</orders>; rel=up", "</orders/7/receipt>; rel=receipt"},
		"Content-Disposition": {`attachment; filename="7.json"`}, "Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"},
		"X-Invoice": {"7"},
	}
	dropped := http.Header{
		"Set-Cookie": {"session=1", "csrf=2"}, "Access-Control-Allow-Origin": {"https://first.example"},
		"X-Request-Id": {"first"}, "Traceparent": {"00-1"}, "Server-Timing": {"db;dur=1"}, "Ratelimit-Remaining": {"9"},
		"X-Ratelimit-Limit": {"10"}, "Www-Authenticate": {"Bearer"}, "Retry-After": {"9"}, "Cache-Control": {"max-age=9"},
	}
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), kept)
		maps.Copy(w.Header(), dropped)
		w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Etag", "too late")
	})
	r.wrap = func(next http.Handler) http.Handler { // what outer middleware says of each request
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Vary", req.Header.Get("X-Nonce"))
			w.Header().Add("Link", "<outer>")
			next.ServeHTTP(w, req)
		})
	}
	r.serve()
	first := r.send(post("/x", "k", "").with("X-Nonce", "1"))
	second := r.send(post("/x", "k", "").with("X-Nonce", "2"))
	for name, want := range kept {
		for who, got := range map[string]http.Header{"first": first.header, "repeat": second.header} {
			if !slices.Equal(got[name], want) {
				t.Errorf("%s: %s is %q, want %q", who, name, got[name], want)
			}
		}
	}
	for name, want := range dropped {
		if !slices.Equal(first.header[name], want) || second.header[name] != nil {
			t.Errorf("%s: first %q, want %q; repeat %q, want none", name, first.header[name], want, second.header[name])
		}
	}
	if date := second.header.Get("Date"); date == "" || date == first.header.Get("Date") {
		t.Errorf("the repeat's Date is %q, want that of its own moment", date)
	}
	if v1, v2 := first.header.Get("Vary"), second.header.Get("Vary"); v1 != "1" || v2 != "2" {
		t.Errorf("outer middleware's header is %q and %q, want that of each request, 1 and 2", v1, v2)
	}
}

func TestP4_handlerThatSaysNothingAnswers200(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/x", idemhttp.Route{}, func(http.ResponseWriter, *http.Request) { runs.Add(1) })
	r.serve()
	first, second := r.send(post("/x", "k", "")), r.send(post("/x", "k", ""))
	r.want(first, 200, "")
	r.want(second, 200, "")
	if first.body != "" || second.body != "" || !second.replayed() || runs.Load() != 1 {
		t.Errorf("bodies %q, %q, replayed %v, %d runs; want none, none, true, 1", first.body, second.body, second.replayed(), runs.Load())
	}
	r.wantState("k", "answered")
}
