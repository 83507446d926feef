package storm_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// broken are the ways to break a shop.
func broken() map[string]func(http.Handler) http.Handler {
	return map[string]func(http.Handler) http.Handler{
		"no guard": editing(func(r *http.Request) {
			if r.URL.Path == "/orders" {
				r.URL.Path = "/unguarded/orders"
			}
		}),
		"a key is forgotten":           forgetKeys,
		"a payment's key is forgotten": only("/payments", forgetKeys),
		"a refund's key is forgotten":  only("/refunds", forgetKeys),
		"a decline is taken for a payment": rewriting(func(w *httptest.ResponseRecorder) {
			if strings.Contains(w.Body.String(), "card-declined") {
				w.Code = http.StatusCreated
			}
		}),
		"a scope is shared": editing(func(r *http.Request) { r.Header.Del("Authorization") }),
		"a mismatch is taken": rewriting(func(w *httptest.ResponseRecorder) {
			if strings.Contains(w.Body.String(), "key-mismatch") {
				w.Code = http.StatusCreated
				w.Header().Set("Content-Type", "application/json")
			}
		}),
		"another replay": rewriting(func(w *httptest.ResponseRecorder) {
			if w.Header().Get("Idempotent-Replayed") != "" {
				w.Body.WriteString("\n")
			}
		}),
		"no Location": rewriting(func(w *httptest.ResponseRecorder) {
			if w.Header().Get("Idempotent-Replayed") != "" {
				w.Header().Del("Location")
			}
		}),
		"an unmarked replay": rewriting(func(w *httptest.ResponseRecorder) { w.Header().Del("Idempotent-Replayed") }),
		"nothing is doubled": editing(func(r *http.Request) { r.URL.Path = strings.TrimPrefix(r.URL.Path, "/unguarded") }),
		"busy once":          busyOnce,
		"crashing":           crash,
		"away": func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { unavailable(w) })
		},
	}
}

// crash ends the process at its tenth request.
func crash(http.Handler) http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if count.Add(1) == 10 {
			exit(errors.New("as told"))
		}
		unavailable(w)
	})
}

func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "0")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// only breaks what is at one path.
func only(path string, how func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		changed := how(h)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				changed.ServeHTTP(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

// forgetKeys makes every request one of its own, in every process.
func forgetKeys(h http.Handler) http.Handler {
	var count atomic.Int64
	return editing(func(r *http.Request) {
		r.Header.Set("Idempotency-Key", fmt.Sprintf("k%d-%d", os.Getpid(), count.Add(1)))
	})(h)
}

// busyOnce asks every intent to come back once.
func busyOnce(h http.Handler) http.Handler {
	var mu sync.Mutex
	seen := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Path + r.Header.Get("Idempotency-Key") + r.Header.Get("Authorization")
		mu.Lock()
		known := seen[key]
		seen[key] = true
		mu.Unlock()
		if known {
			h.ServeHTTP(w, r)
			return
		}
		unavailable(w)
	})
}

func editing(change func(*http.Request)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			h.ServeHTTP(w, r)
		})
	}
}

func rewriting(change func(*httptest.ResponseRecorder)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			held := httptest.NewRecorder()
			h.ServeHTTP(held, r)
			change(held)
			for name, values := range held.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(held.Code)
			_, _ = w.Write(held.Body.Bytes())
		})
	}
}
