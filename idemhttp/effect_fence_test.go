package idemhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// E8: an owner that has called and lost its lease cannot record over its successor,
// whatever it has learnt. Its messages to the database are held from the claim on, as
// those of a process that is frozen.
func TestE8_aFencedOutOwnerRecordsNothingOverItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]error{
		"a result": nil,
		"a proof":  idem.NotApplied(errors.New("the wrong bank")),
		"an error": errors.New("the bank hung up"),
	} {
		for how, e := range map[string]idem.Effect{"keyed": charge(), "keyless": keyless()} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				url := pgtest.NewURL(t)
				proxy := newProxy(t, pgtest.Direct(t, url))
				a, b := rigOn(t, pgtest.Pool(t, proxy.URL())), rigOn(t, pgtest.Pool(t, url))
				var inCall *gate
				var calls atomic.Int64
				serve := func(p *rig, call func(context.Context, string) (receipt, error)) {
					p.handle("/pay", idemhttp.Route{Lease: second, Wait: 20 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
						got, err := idem.Call(req.Context(), e, call)
						if err == nil {
							err = insertOrder(req)
						}
						if err != nil {
							http.Error(w, err.Error(), http.StatusConflict)
							return
						}
						w.WriteHeader(http.StatusCreated)
						_, _ = fmt.Fprint(w, got.Number)
					})
					p.serve()
				}
				serve(a, func(ctx context.Context, _ string) (receipt, error) {
					calls.Add(1)
					inCall.pass()
					return receipt{1}, ends
				})
				serve(b, func(context.Context, string) (receipt, error) { return receipt{calls.Add(1)}, nil })
				inCall = newGate(t)
				frozen := a.begin(post("/pay", "k", "{}"))
				inCall.inside(t)
				held := proxy.Add(faultproxy.Rule{When: func(m faultproxy.Message) bool { return m.Direction == faultproxy.FromClient }, Times: -1, Do: faultproxy.Hold()})
				taken := b.send(post("/pay", "k", "{}"))
				if how == "keyed" {
					b.want(taken, 201, "")
					b.wantEffect("applied")
				} else {
					b.want(taken, 409, "outcome-unknown")
					b.wantEffect("unknown")
				}
				inCall.release() // the owner has its result and is still frozen
				held.Disarm()
				held.Release()
				got := <-frozen
				b.want(got, 425, "in-flight")
				if n := a.outcomes()[idem.OutcomeLeaseLost]; n != 1 {
					t.Errorf("the owner's outcomes are %v, want one lease_lost", a.outcomes())
				}
				if how == "keyed" {
					b.wantRows("select count(*) from idem.applied_effects where status = 'applied' and result = $1", 1, []byte(`{"number":2}`))
					b.wantRows("select count(*) from orders", 1)
				} else {
					b.wantEffect("unknown")
					b.wantRows("select count(*) from orders", 0)
				}
			})
		}
	}
}

// E1: two requests that apply one effect at once, through the guard.
func TestE1_ofTwoRequestsThatApplyAtOnceOneIsSkipped(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{0, time.Minute} {
		for _, level := range levels {
			t.Run(fmt.Sprint(lease, " ", level), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				var ran atomic.Int64
				var g *gate
				r.handle("/x", idemhttp.Route{Lease: lease, TxOptions: pgx.TxOptions{IsoLevel: level}}, func(w http.ResponseWriter, req *http.Request) {
					tx := idem.Tx(req.Context())
					if _, err := tx.Exec(req.Context(), "select count(*) from orders"); err != nil { // its snapshot is taken
						http.Error(w, err.Error(), http.StatusConflict)
						return
					}
					got, _, err := idem.Apply(req.Context(), tx, idem.Effect{Scope: "shop", Key: "post:1", Input: 1}, func(ctx context.Context, tx pgx.Tx) (int64, error) {
						_, err := tx.Exec(ctx, "insert into orders (customer, amount) values (1, 1)")
						n := ran.Add(1)
						if n == 1 {
							g.pass()
						}
						return n, err
					})
					if err != nil {
						http.Error(w, err.Error(), http.StatusConflict)
						return
					}
					w.WriteHeader(http.StatusCreated)
					_, _ = fmt.Fprint(w, got)
				})
				r.serve()
				g = newGate(t)
				first := r.begin(post("/x", "one", "{}"))
				g.inside(t)
				second := r.begin(post("/x", "two", "{}"))
				r.eventuallyBlocked(1)
				g.release()
				one, two := <-first, <-second
				r.want(one, 201, "")
				r.want(two, 201, "")
				if one.body != "1" || two.body != "1" || two.replayed() || ran.Load() != 1 {
					t.Errorf("got %q and %q after %d runs", one.body, two.body, ran.Load())
				}
				if got := r.effectResults(); got[idem.EffectApplied] != 1 || got[idem.EffectSkipped] != 1 {
					t.Errorf("the events of effects are %v", got)
				}
				r.mu.Lock()
				for _, e := range r.events {
					if e.Kind == idem.EventEffect && (!e.Attempted || e.Effect != "post:1" || e.Route != "POST /x" || e.Scope != "guest" || e.Key == "") {
						t.Errorf("an event is %+v", e)
					}
				}
				r.mu.Unlock()
				r.wantRows("select count(*) from orders", 1)
			})
		}
	}
}

// E3: a guarded handler that swallows what its effect has met.
func TestE3_aHandlerThatSwallowsLeavesNoFact(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{0, time.Minute} {
		for name, bad := range map[string]func(ctx context.Context, tx pgx.Tx) (int, error){
			"an error": func(context.Context, pgx.Tx) (int, error) { return 0, errors.New("no") },
			"a failed statement": func(ctx context.Context, tx pgx.Tx) (int, error) {
				_, err := tx.Exec(ctx, "insert into orders (id) values (null)")
				return 0, err
			},
			"a panic": func(context.Context, pgx.Tx) (int, error) { panic("boom") },
			"a panic amid rows": func(ctx context.Context, tx pgx.Tx) (int, error) {
				_, _ = tx.Query(ctx, "select generate_series(1, 100000)")
				panic("boom")
			},
		} {
			t.Run(fmt.Sprint(lease, " ", name), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.handle("/x", idemhttp.Route{Lease: lease}, func(w http.ResponseWriter, req *http.Request) {
					func() {
						defer func() { _ = recover() }()
						_, _, err := idem.Apply(req.Context(), idem.Tx(req.Context()), idem.Effect{Scope: "shop", Key: "post:1"}, func(ctx context.Context, tx pgx.Tx) (int, error) {
							if _, err := tx.Exec(ctx, "insert into orders (customer, amount) values (7, 7)"); err != nil {
								t.Error(err)
							}
							return bad(ctx, tx)
						})
						if err == nil {
							t.Error("Apply has not failed")
						}
					}()
					if err := insertOrder(req); err != nil {
						t.Error(err)
					}
					w.WriteHeader(http.StatusCreated)
				})
				r.serve()
				r.want(r.send(post("/x", "k", "{}")), 201, "")
				r.wantRows("select count(*) from orders", 1)
				r.wantRows("select count(*) from idem.applied_effects", 0)
			})
		}
	}
}

// Calls that cannot be made are errors that write nothing.
func TestCall_badInputIsAnErrorThatWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fn := func(context.Context, string) (receipt, error) {
		t.Error("the call was made")
		return receipt{}, nil
	}
	changed := func(change func(*idem.Effect)) idem.Effect {
		e := charge()
		change(&e)
		return e
	}
	errs := map[string]error{}
	r.handle("/x", onALease, func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		for name, e := range map[string]idem.Effect{
			"Effect.Key has 0 bytes; it must have 1 to 512":            changed(func(e *idem.Effect) { e.Key = "" }),
			"Effect.Key has 513 bytes; it must have 1 to 512":          changed(func(e *idem.Effect) { e.Key = fmt.Sprintf("%0513d", 1) }),
			"at most 1048576 are allowed: keep a reference instead":    changed(func(e *idem.Effect) { e.Input = fmt.Sprintf("%01048577d", 1) }),
			"Effect.Input cannot be encoded":                           changed(func(e *idem.Effect) { e.Input = make(chan int) }),
			"Keyed(0s): the window is how long the provider honours a": changed(func(e *idem.Effect) { e.Provider = idem.Keyed(0) }),
			"Keyed(-1h0m0s)":                        changed(func(e *idem.Effect) { e.Provider = idem.Keyed(-time.Hour) }),
			"Effect.Timeout is -1s; zero means 10s": changed(func(e *idem.Effect) { e.Timeout = -time.Second }),
		} {
			_, errs[name] = idem.Call(ctx, e, fn)
		}
		_, errs["give Call what it is to do"] = idem.Call[receipt](ctx, charge(), nil)
		_, errs["return a type that encoding/json can marshal"] = idem.Call(ctx, charge(), func(context.Context, string) (chan int, error) {
			t.Error("the call was made")
			return nil, nil
		})
		w.WriteHeader(http.StatusUnprocessableEntity)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 422, "")
	for says, err := range errs {
		if !errors.Is(err, idem.ErrEffectInvalid) || !contains(err, says) {
			t.Errorf("got %v, want ErrEffectInvalid that says %q", err, says)
		}
	}
	if len(errs) != 9 {
		t.Errorf("%d errors", len(errs))
	}
	r.wantRows("select count(*) from idem.applied_effects", 0)
	r.wantFree()
}

// contains reports whether err says so.
func contains(err error, says string) bool { return err != nil && strings.Contains(err.Error(), says) }

// What is called in the wrong place is an error that writes nothing.
func TestCall_inTheWrongPlaceIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fn := func(context.Context, string) (receipt, error) {
		t.Error("the call was made")
		return receipt{}, nil
	}
	r.handle("/transaction", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if _, err := idem.Call(req.Context(), charge(), fn); !errors.Is(err, idem.ErrNoLease) || !contains(err, "set Route.Lease") {
			t.Errorf("in the transaction: %v", err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	var kept context.Context
	r.handle("/final", onALease, func(w http.ResponseWriter, req *http.Request) {
		kept = req.Context()
		idem.AfterCommit(kept, func(ctx context.Context) {
			if _, err := idem.Call(ctx, charge(), fn); !errors.Is(err, idem.ErrNoLease) {
				t.Errorf("after the commit: %v", err)
			}
			if _, err := idem.Call(context.WithoutCancel(kept), charge(), fn); err == nil {
				t.Error("after the commit, in the handler's context: no error")
			}
		})
		if err := insertOrder(req); err != nil {
			t.Error(err)
		}
		if _, err := idem.Call(kept, charge(), fn); !errors.Is(err, idem.ErrFinal) || !contains(err, "make every Call before the first statement in idem.Tx") {
			t.Errorf("in the final transaction: %v", err)
		}
		own, err := r.pool.Begin(kept)
		if err != nil {
			t.Error(err)
		}
		_, _, err = idem.Apply(kept, own, idem.Effect{Scope: "shop", Key: "own"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
		if !errors.Is(err, idem.ErrFinal) || !contains(err, "apply own in idem.Tx itself") {
			t.Errorf("Apply beside the final transaction: %v", err)
		}
		_ = own.Rollback(kept)
		w.WriteHeader(http.StatusCreated)
	})
	r.handle("/closed", onALease, func(w http.ResponseWriter, req *http.Request) {
		own, err := r.pool.Begin(req.Context())
		if err != nil {
			t.Error(err)
		}
		_ = own.Rollback(req.Context())
		_, _, err = idem.Apply(req.Context(), own, idem.Effect{Scope: "shop", Key: "own"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("Apply in a closed transaction: %v", err)
		}
		http.Error(w, "no", http.StatusUnprocessableEntity)
	})
	r.serve()
	r.want(r.send(post("/transaction", "t", "{}")), 201, "")
	r.want(r.send(post("/final", "f", "{}")), 201, "")
	r.want(r.send(post("/closed", "c", "{}")), 422, "")
	r.wantRows("select count(*) from idem.applied_effects", 0)
	r.wantRows("select count(*) from idem.idempotency_keys where key = 'c'", 0)
	if _, err := idem.Call(context.WithoutCancel(kept), charge(), fn); err == nil {
		t.Error("after the request, in the handler's context: no error")
	}
	r.wantRows("select count(*) from idem.applied_effects", 0)
}

// A result that cannot be recorded is one that exists: the effect is unknown.
func TestCall_aResultThatCannotBeRecordedIsUnknown(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]idem.Provider{"keyed": idem.Keyed(time.Hour), "keyless": {}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			e := charge()
			e.Provider = provider
			calls, runs := 0, 0
			r.handle("/x", onALease, func(w http.ResponseWriter, req *http.Request) {
				_, err := idem.Call(req.Context(), e, func(context.Context, string) (any, error) {
					calls++
					return make(chan int), nil
				})
				if !errors.Is(err, idem.ErrOutcomeUnknown) {
					t.Errorf("got %v", err)
				}
				if runs++; runs == 1 && !errors.Is(err, idem.ErrEffectInvalid) {
					t.Errorf("got %v, want ErrEffectInvalid, too", err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			r.serve()
			for range 2 {
				r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
			}
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
			r.wantEffect("unknown")
		})
	}
}

// The database is away when the intention is to be committed: nothing is called, and
// no answer of the handler's is stored, whatever it makes of the error.
func TestP12_anIntentionThatCouldNotBeCommittedIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"201", "402", "409", "422"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			url := pgtest.NewURL(t)
			proxy := newProxy(t, pgtest.Direct(t, url))
			r := rigOn(t, pgtest.Pool(t, proxy.URL()))
			calls := 0
			r.handle("/x", onALease, func(w http.ResponseWriter, req *http.Request) {
				_, err := idem.Call(req.Context(), charge(), func(context.Context, string) (receipt, error) {
					calls++
					return receipt{1}, nil
				})
				said, _ := io.ReadAll(req.Body)
				var n int
				_, _ = fmt.Sscan(string(said), &n)
				if err == nil {
					n = 200
				}
				w.WriteHeader(n)
			})
			r.serve()
			cut := proxy.Add(faultproxy.Rule{When: func(m faultproxy.Message) bool {
				return m.Direction == faultproxy.FromClient && m.Type == "Parse" && strings.Contains(m.SQL, "insert into idem.applied_effects")
			}, Do: faultproxy.Cut()})
			got := r.send(post("/x", "k", status))
			<-cut.Reached()
			r.want(got, 503, "unavailable")
			r.want(r.send(post("/x", "k", status)), 200, "")
			if calls != 1 {
				t.Errorf("%d calls, want one", calls)
			}
		})
	}
}
