package idemhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

// exampleGuard is a guard on a fresh database whose scope is public.
func exampleGuard() (*idemhttp.Guard, func()) {
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	if _, err := pool.Exec(context.Background(), "create table payments (id int generated always as identity, state text)"); err != nil {
		panic(err)
	}
	db, err := idem.Open(context.Background(), pool, idem.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		panic(err)
	}
	return guard, done
}

// send posts body under key and prints the answer.
func send(h http.Handler, key, body string) {
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	line := fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()), " ", w.Header().Get("Idempotent-Replayed"))
	fmt.Println(strings.TrimSpace(line))
}

// The handler writes in the transaction that commits with its answer; a repeat
// gets that answer without a line of the handler being run.
func ExampleGuard_Route() {
	guard, done := exampleGuard()
	defer done()
	pay := guard.Route(idemhttp.Route{Name: "POST /payments", TTL: idem.Orders})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var id int
			err := idem.Tx(r.Context()).QueryRow(r.Context(),
				"insert into payments (state) values ('captured') returning id").Scan(&id)
			if err != nil {
				http.Error(w, "try again", http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id":%d}`, id)
		}))
	send(pay, "k1", `{"amount":1500}`)
	send(pay, "k1", `{"amount":1500}`)
	send(pay, "k2", `{"amount":1500}`)
	// Output:
	// 201 {"id":1}
	// 201 {"id":1} true
	// 201 {"id":2}
}

// A refusal is remembered while its writes are rolled back, unless the handler
// wants to keep them: the declined payment stays on record.
func ExampleRoute_keepWrites() {
	guard, done := exampleGuard()
	defer done()
	pay := guard.Route(idemhttp.Route{Name: "POST /payments"})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into payments (state) values ('declined')")
			if err != nil {
				http.Error(w, "try again", http.StatusInternalServerError)
				return
			}
			idem.KeepWrites(r.Context())
			http.Error(w, "declined", http.StatusPaymentRequired)
		}))
	send(pay, "k", "{}")
	send(pay, "k", "{}")
	// Output:
	// 402 declined
	// 402 declined true
}

// What follows a commit, and must not happen without it, goes into AfterCommit.
func ExampleRoute_afterCommit() {
	guard, done := exampleGuard()
	defer done()
	pay := guard.Route(idemhttp.Route{Name: "POST /payments"})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			idem.AfterCommit(r.Context(), func(context.Context) { fmt.Println("committed") })
			w.WriteHeader(http.StatusCreated)
		}))
	send(pay, "k", "{}")
	send(pay, "k", "{}")
	// Output:
	// committed
	// 201
	// 201  true
}

// On a lease the handler may call other systems: each call is an effect, made once,
// and what is written in idem.Tx afterwards commits together with the answer.
func ExampleRoute_lease() {
	guard, done := exampleGuard()
	defer done()
	charges := 0
	pay := guard.Route(idemhttp.Route{Name: "POST /payments", Lease: idemhttp.DefaultLease})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			effect := idem.Effect{Scope: "shop", Key: "charge:order:17", Provider: idem.Keyed(23 * time.Hour)}
			charge, err := idem.Call(r.Context(), effect, func(ctx context.Context, downstreamKey string) (string, error) {
				charges++ // the bank's API, called with downstreamKey and ctx
				return "captured", nil
			})
			if err != nil {
				http.Error(w, "try again", http.StatusServiceUnavailable) // or what the guard answers for it
				return
			}
			if _, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into payments (state) values ($1)", charge); err != nil {
				http.Error(w, "try again", http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, charge)
		}))
	send(pay, "k", "{}")
	send(pay, "k", "{}")
	fmt.Println("charges:", charges)
	// Output:
	// 201 captured
	// 201 captured true
	// charges: 1
}

// A form sends no headers: a hidden field carries the key, so that a double
// click makes one payment.
func ExampleRoute_keyFrom() {
	guard, done := exampleGuard()
	defer done()
	runs := 0
	pay := guard.Route(idemhttp.Route{
		Name:    "POST /payments",
		KeyFrom: func(r *http.Request) []string { _ = r.ParseForm(); return r.PostForm["key"] },
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { runs++ }))
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("key=k&amount=1500"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		pay.ServeHTTP(httptest.NewRecorder(), r)
	}
	fmt.Println("runs:", runs)
	// Output: runs: 1
}

// With canonical JSON the order of keys and white space make no difference.
func ExampleRoute_canonicalJSON() {
	guard, done := exampleGuard()
	defer done()
	pay := guard.Route(idemhttp.Route{Name: "POST /payments", CanonicalJSON: true})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "paid") }))
	for _, body := range []string{`{"a":1,"b":2}`, `{ "b": 2.0, "a": 1 }`} {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		pay.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body, w.Header().Get("Idempotent-Replayed") == "true")
	}
	// Output:
	// 200 paid false
	// 200 paid true
}

// A route may remember where the answer is to be found instead of its bytes.
func ExampleRoute_fetch() {
	guard, done := exampleGuard()
	defer done()
	state := "pending"
	pay := guard.Route(idemhttp.Route{
		Name:   "POST /payments",
		Replay: idemhttp.ReplayResource,
		Fetch:  func(w http.ResponseWriter, _ *http.Request, ref string) { fmt.Fprintf(w, "%s is %s", ref, state) },
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		idem.Reference(r.Context(), "payment 7")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "payment 7 is %s", state)
	}))
	send(pay, "k", "{}")
	state = "captured"
	send(pay, "k", "{}")
	// Output:
	// 202 payment 7 is pending
	// 202 payment 7 is captured true
}

// ReplayCheck asks again for the right to this very answer.
func ExampleRoute_replayCheck() {
	guard, done := exampleGuard()
	defer done()
	allowed := true
	pay := guard.Route(idemhttp.Route{
		Name: "POST /payments",
		ReplayCheck: func(*http.Request, idem.Answer) error {
			if !allowed {
				return errors.New("no longer a member")
			}
			return nil
		},
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secret") }))
	h := statusOnly(pay)
	send(h, "k", "{}")
	allowed = false
	send(h, "k", "{}")
	// Output:
	// 200
	// 403
}

// statusOnly leaves the body of what h answers away.
func statusOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := httptest.NewRecorder()
		h.ServeHTTP(inner, r)
		w.WriteHeader(inner.Code)
	})
}

// A policy chooses, by status, what is committed and what is remembered.
func ExampleRoute_policies() {
	guard, done := exampleGuard()
	defer done()
	open := false
	pay := guard.Route(idemhttp.Route{
		Name:     "POST /payments",
		Policies: map[int]idemhttp.Policy{http.StatusConflict: idemhttp.RollbackAndFree},
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open {
			http.Error(w, "closed", http.StatusConflict)
			return
		}
		fmt.Fprint(w, "paid")
	}))
	send(pay, "k", "{}")
	open = true
	send(pay, "k", "{}")
	// Output:
	// 409 closed
	// 200 paid
}
