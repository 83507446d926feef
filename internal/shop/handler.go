package shop

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// Handler returns the shop as an http.Handler. Call it once: the guard's routes
// have names of their own.
func (s *Shop) Handler() http.Handler {
	guarded := func(name string, h http.HandlerFunc) http.Handler {
		return s.guard.Route(idemhttp.Route{Name: name, TTL: idem.Orders})(h)
	}
	leased := idemhttp.Route{Name: "POST /payments", TTL: idem.Orders, Lease: s.lease}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", guarded("POST /orders", s.createOrder))
	mux.Handle("POST /bookings", guarded("POST /bookings", s.createBooking))
	mux.Handle("POST /payments", s.guard.Route(leased)(http.HandlerFunc(s.createPayment)))
	mux.Handle("POST /refunds", guarded("POST /refunds", s.createRefund))
	mux.HandleFunc("GET /refunds/{id}", s.readRefundByID)
	mux.HandleFunc("POST /unguarded/orders", s.createUnguardedOrder)
	mux.HandleFunc("GET /orders/{id}", s.readOrderByID)
	mux.HandleFunc("GET /ledger", s.readLedger)
	mux.HandleFunc("GET /stats", s.readStats)
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", s.ready)
	if s.metrics != nil {
		mux.Handle("GET /metrics", s.metrics)
	}
	addPage(mux, s.faults)
	handler := explainMisses(mux)
	if s.faults {
		handler = withFaults(handler)
	}
	return s.recoverPanics(handler)
}

// explainMisses answers with a problem where the mux has no handler, instead of
// its line of plain text.
func explainMisses(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		miss := unsent{make(http.Header)}
		mux.ServeHTTP(miss, r)
		if allow := miss.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			refuse(w, "method-not-allowed", "Use one of: "+allow+".")
			return
		}
		refuse(w, "not-found", "GET / lists the endpoints.")
	})
}

// recoverPanics logs a handler's panic and answers 500 if nothing was answered.
// It does not claim to know what came of the request: a handler without the
// guard, or one that committed by itself, may have taken effect. http.ErrAbortHandler goes on to the server,
// which closes the connection.
func (s *Shop) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered := &answering{ResponseWriter: w}
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) || answered.begun {
				panic(http.ErrAbortHandler)
			}
			s.logger.ErrorContext(r.Context(), "shop: panic", "method", r.Method, "path", r.URL.Path,
				"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
			refuse(w, "internal", "The handler panicked. Send the same request with the same Idempotency-Key again; without a key, look first whether it took effect.")
		}()
		next.ServeHTTP(answered, r)
	})
}

// answering notes whether an answer has begun.
type answering struct {
	http.ResponseWriter
	begun bool
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answering) WriteHeader(status int) {
	a.begun = a.begun || status >= 200
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answering) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}
