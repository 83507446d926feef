package idemhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

// A body that was read before the guard would make any two requests the same.
func TestBody_readBeforeTheGuardIsNotApplied(t *testing.T) {
	for name, read := range map[string]func(req *http.Request){
		"PostFormValue": func(req *http.Request) { _ = req.PostFormValue("csrf") },
		"FormValue":     func(req *http.Request) { _ = req.FormValue("csrf") },
		"ReadAll":       func(req *http.Request) { _, _ = io.ReadAll(req.Body) },
		"the first bytes": func(req *http.Request) {
			_, _ = io.ReadFull(req.Body, make([]byte, 3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var runs atomic.Int64
			amounts(r, &runs)
			r.wrap = before(read)
			r.serve()
			for _, amount := range []string{"1500", "1500", "9999"} {
				r.want(r.send(form("amount="+amount+"&csrf=x")), 500, "not-applied")
			}
			if n := runs.Load(); n != 0 {
				t.Errorf("the handler ran %d times, want never", n)
			}
			r.wantFree()
		})
	}
}

func TestBody_putBackBeforeTheGuardIsComparedWhole(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	amounts(r, &runs)
	r.wrap = before(func(req *http.Request) {
		all, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(all))
	})
	r.serve()
	r.want(r.send(form("amount=1500")), 201, "")
	if got := r.send(form("amount=1500")); got.status != 201 || !got.replayed() || got.body != "amount 1500" {
		t.Errorf("the repeat got %d %q, replayed %v", got.status, got.body, got.replayed())
	}
	r.want(r.send(form("amount=9999")), 409, "key-mismatch")
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

// before is middleware that looks at the request ahead of the guard.
func before(look func(*http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { look(req); next.ServeHTTP(w, req) })
	}
}

func form(fields string) sending {
	s := post("/x", "k", fields)
	s.header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	return s
}

// amounts answers with the amount that it read from the form.
func amounts(r *rig, runs *atomic.Int64) {
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "amount "+req.FormValue("amount"))
	})
}

func TestFingerprint_routesBehindStripPrefixShareNoAnswer(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"charges", "refunds"} {
		route := r.guard.Route(idemhttp.Route{Name: name})
		r.mux.Handle("/"+name+"/", http.StripPrefix("/"+name, route(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if err := insertOrder(req); err != nil {
				panic(err)
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, strings.ToUpper(name))
		}))))
	}
	r.serve()
	r.want(r.send(post("/charges/new", "k", "{}")), 201, "")
	r.want(r.send(post("/refunds/new", "k", "{}")), 409, "key-mismatch")
	if got := r.send(post("/charges/new", "k", "{}")); got.body != "CHARGES" || !got.replayed() {
		t.Errorf("the repeat got %d %q, replayed %v", got.status, got.body, got.replayed())
	}
	r.wantRows("select count(*) from orders", 1)
}
