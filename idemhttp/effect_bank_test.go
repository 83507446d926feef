package idemhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// trouble is what a bank does to one call.
type trouble int

const (
	none        trouble = iota
	hangUpFirst         // it hangs up before it has charged
	hangUpAfter         // it has charged and hangs up
	stallFirst          // it does not answer and has not charged
	stallAfter          // it has charged and does not answer
	refuse              // it says that it has not charged
	failAfter           // it fails, having charged
)

// ledgerBank is a bank behind a socket. It honours keys, unless it is keyless.
type ledgerBank struct {
	t       testing.TB
	server  *httptest.Server
	keyless bool

	mu       sync.Mutex
	troubles []trouble // of the calls to come, in their order
	calls    int
	keys     map[string]int64 // the charge that each key has made
	charges  int64
	called   chan string // the keys of the calls, as they come in
	stalled  chan struct{}
}

func newLedgerBank(t testing.TB, keyless bool, troubles ...trouble) *ledgerBank {
	b := &ledgerBank{t: t, keyless: keyless, troubles: troubles, keys: map[string]int64{},
		called: make(chan string, 100), stalled: make(chan struct{})}
	b.server = httptest.NewUnstartedServer(b)
	b.server.Config.ErrorLog = discard
	b.server.Start()
	t.Cleanup(b.server.Close)
	t.Cleanup(sync.OnceFunc(func() { close(b.stalled) }))
	return b
}

func (b *ledgerBank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	b.called <- key
	meets := b.next()
	if meets == hangUpFirst {
		panic(http.ErrAbortHandler)
	}
	if meets == stallFirst {
		b.stall(r)
		panic(http.ErrAbortHandler)
	}
	if meets == refuse {
		http.Error(w, "not charged", http.StatusPaymentRequired)
		return
	}
	number := b.book(key)
	switch meets {
	case hangUpAfter:
		panic(http.ErrAbortHandler)
	case stallAfter:
		b.stall(r)
		panic(http.ErrAbortHandler)
	case failAfter:
		http.Error(w, "the bank fails", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(receipt{number})
}

// stall waits until the caller has gone.
func (b *ledgerBank) stall(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-b.stalled:
	}
}

func (b *ledgerBank) next() trouble {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.calls > len(b.troubles) {
		return none
	}
	return b.troubles[b.calls-1]
}

func (b *ledgerBank) book(key string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number, seen := b.keys[key]; seen && !b.keyless {
		return number
	}
	b.charges++
	b.keys[key] = b.charges
	return b.charges
}

// want fails unless the bank has been called and has charged so often, with one key.
func (b *ledgerBank) want(calls int, charges int64) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls != calls || b.charges != charges || len(b.keys) > 1 {
		b.t.Errorf("the bank has %d charges of %d calls with %d keys, want %d of %d", b.charges, b.calls, len(b.keys), charges, calls)
	}
}

var bankClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// charge calls the bank once. Who is refused, or cannot connect, has proof.
func (b *ledgerBank) charge(ctx context.Context, key string) (got receipt, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.server.URL, nil)
	if err != nil {
		return got, idem.NotApplied(err)
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := bankClient.Do(req)
	if err != nil {
		return got, err
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusOK:
		return got, json.NewDecoder(res.Body).Decode(&got)
	case http.StatusPaymentRequired:
		return got, idem.NotApplied(errors.New("refused"))
	default:
		return got, fmt.Errorf("the bank answered %d", res.StatusCode)
	}
}

// paying serves POST /pay: it charges the bank, writes an order and answers. What
// fails is answered 500 unless the error says that nothing was charged: 402.
func (r *rig) paying(b *ledgerBank, e idem.Effect, route idemhttp.Route) {
	r.handle("/pay", route, func(w http.ResponseWriter, req *http.Request) {
		got, err := idem.Call(req.Context(), e, b.charge)
		if err == nil {
			err = insertOrder(req)
		}
		switch {
		case err == nil:
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(got)
		case errors.Is(err, idem.ErrOutcomeUnknown), errors.Is(err, idem.ErrInFlight), errors.Is(err, idem.ErrLeaseLost):
			w.WriteHeader(http.StatusCreated) // which must not be believed
		default:
			http.Error(w, err.Error(), http.StatusPaymentRequired)
		}
	})
}

// keyless is charge at a bank that honours no key.
func keyless() idem.Effect {
	e := charge()
	e.Provider = idem.Provider{}
	return e
}

// effect reads what is stored of the effect of charge.
func (r *rig) effect() (status, downstream string, calls int) {
	r.t.Helper()
	err := r.pool.QueryRow(context.Background(), `select status, coalesce(downstream_key, ''), calls
		from idem.applied_effects where scope = 'shop' and effect_key = 'charge:1'`).Scan(&status, &downstream, &calls)
	if err != nil {
		r.t.Fatal(err)
	}
	return status, downstream, calls
}

// wantEffect fails unless the effect of charge is so.
func (r *rig) wantEffect(want string) {
	r.t.Helper()
	if got, _, _ := r.effect(); got != want {
		r.t.Errorf("the effect is %s, want %s", got, want)
	}
}

// ageEffects makes every effect older by d.
func (r *rig) ageEffects(d time.Duration) {
	r.t.Helper()
	_, err := r.pool.Exec(context.Background(), `update idem.applied_effects set created_at = created_at - $1::interval,
		intended_at = intended_at - $1::interval, call_until = call_until - $1::interval, keyed_until = keyed_until - $1::interval`, d)
	if err != nil {
		r.t.Fatal(err)
	}
}

// effectResults counts the events of effects so far.
func (r *rig) effectResults() map[idem.EffectResult]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[idem.EffectResult]int{}
	for _, e := range r.events {
		if e.Kind == idem.EventEffect {
			counts[e.Result]++
		}
	}
	return counts
}
