package idemhttp_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

// zipped is a small compression middleware. Some decide before the handler runs
// (eager), others at the first byte.
func zipped(eager bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				next.ServeHTTP(w, r)
				return
			}
			z := &zipWriter{ResponseWriter: w}
			if eager {
				w.Header().Set("Content-Encoding", "gzip")
				z.zip = gzip.NewWriter(w)
			}
			next.ServeHTTP(z, r)
			if z.zip != nil {
				_ = z.zip.Close()
			}
		})
	}
}

type zipWriter struct {
	http.ResponseWriter
	zip  *gzip.Writer
	told bool
}

func (z *zipWriter) WriteHeader(status int) {
	z.told = true
	h := z.Header()
	if z.zip == nil && h.Get("Content-Encoding") == "" {
		h.Set("Content-Encoding", "gzip")
		z.zip = gzip.NewWriter(z.ResponseWriter)
	}
	h.Del("Content-Length")
	z.ResponseWriter.WriteHeader(status)
}

func (z *zipWriter) Write(p []byte) (int, error) {
	if !z.told {
		z.WriteHeader(http.StatusOK)
	}
	if z.zip == nil {
		return z.ResponseWriter.Write(p)
	}
	return z.zip.Write(p)
}

func unzip(t *testing.T, r reply) string {
	t.Helper()
	if r.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("Content-Encoding is %q, want gzip", r.header.Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(bytes.NewReader([]byte(r.body)))
	if err != nil {
		t.Fatalf("the body is not gzip: %v: %q", err, r.body)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("the body is not gzip: %v", err)
	}
	return string(plain)
}

const plain = `{"said":"once"}`

func sayPlain(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, plain)
}

func TestP3_gzippedAnswerIsReplayedWithItsEncoding(t *testing.T) {
	for _, eager := range []bool{false, true} {
		r := newRig(t)
		inside := zipped(eager)(http.HandlerFunc(sayPlain))
		r.handle("/x", idemhttp.Route{}, inside.ServeHTTP)
		r.wrap = zipped(false) // and one outside, which must not zip it again
		r.serve()
		zip := post("/x", "k", "").with("Accept-Encoding", "gzip")
		first, second := r.send(zip), r.send(zip)
		if got := unzip(t, first); got != plain {
			t.Errorf("eager %v: the first got %q", eager, got)
		}
		if second.body != first.body || !second.replayed() || unzip(t, second) != plain || !sameHeader(first.header, second.header) {
			t.Errorf("eager %v: the repeat got %v %q", eager, second.header, second.body)
		}
	}
}

func TestP3_compressionOutsideTheGuardIsDecidedForEachRequest(t *testing.T) {
	for _, eager := range []bool{false, true} {
		r := newRig(t)
		r.handle("/x", idemhttp.Route{}, sayPlain)
		r.wrap = zipped(eager)
		r.serve()
		r.server.Client().Transport.(*http.Transport).DisableCompression = true
		with := post("/x", "k", "").with("Accept-Encoding", "gzip")
		without := post("/x", "k", "").with("Accept-Encoding", "identity")
		if got := unzip(t, r.send(with)); got != plain {
			t.Errorf("eager %v: the first got %q", eager, got)
		}
		again := r.send(with)
		if got := unzip(t, again); got != plain || !again.replayed() {
			t.Errorf("eager %v: the repeat got %q, replayed %v", eager, got, again.replayed())
		}
		bare := r.send(without)
		if e := bare.header.Get("Content-Encoding"); bare.body != plain || e != "" {
			t.Errorf("eager %v: a repeat that takes no gzip got %q as %q", eager, bare.body, e)
		}
	}
}
