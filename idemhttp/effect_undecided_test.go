package idemhttp_test

import (
	"context"
	"errors"
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
	"github.com/jackc/pgx/v5/pgxpool"
)

// The tests here are of handlers that go on, and answer what would be remembered,
// though nobody knows what their call has come to.

func TestCall_panicThatTheHandlerRecoversIsUnknown(t *testing.T) {
	for name, e := range map[string]idem.Effect{"keyed": charge(), "keyless": keyless()} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
				defer func() {
					if recover() != nil {
						http.Error(w, "declined", http.StatusPaymentRequired)
					}
				}()
				_, _ = idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
					panic("after the bank has charged")
				})
			})
			r.serve()
			for range 2 {
				r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
			}
			r.wantState("k", "claimed")
		})
	}
}

func TestCall_anotherInputTakesNoDoubtBack(t *testing.T) {
	r := newRig(t)
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		e := keyless()
		_, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
			return receipt{}, errors.New("charged, and hung up")
		})
		if !errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Error(err)
		}
		e.Input = 1600 // another card, a surcharge
		_, err = idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) { return receipt{}, nil })
		if !errors.Is(err, idem.ErrMismatch) {
			t.Error(err)
		}
		http.Error(w, "another card", http.StatusConflict)
	})
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	r.wantState("k", "claimed")
}

// cutAtReply cuts the connection at the reply to the first statement that holds text.
func cutAtReply(proxy *faultproxy.Postgres, text string) *faultproxy.Armed {
	return proxy.Add(faultproxy.Rule{When: func(m faultproxy.Message) bool {
		return m.Direction == faultproxy.FromServer && m.Type == "CommandComplete" && strings.Contains(m.SQL, text)
	}, Do: faultproxy.Cut()})
}

func TestCall_lostReplyOfARepeatedIntentionLeavesTheCallUnknown(t *testing.T) {
	proxy := newProxy(t, pgtest.Direct(t, pgtest.NewURL(t)))
	r := rigOn(t, pgtest.Pool(t, proxy.URL()))
	r.handle("/pay", idemhttp.Route{Lease: time.Second, Limit: time.Second}, func(w http.ResponseWriter, req *http.Request) {
		_, err := idem.Call(req.Context(), charge(), func(ctx context.Context, _ string) (receipt, error) {
			<-ctx.Done() // the bank has charged and does not answer
			return receipt{}, ctx.Err()
		})
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	})
	r.serve()
	r.send(post("/pay", "k", "{}"))
	cut := cutAtReply(proxy, "restarted as (")
	r.send(post("/pay", "k", "{}"))
	if status, _, _ := r.effect(); status != "started" || cut.Visits() == 0 {
		t.Errorf("the effect is %s after %d cuts: a call that may have charged is told as not applied", status, cut.Visits())
	}
}

func TestCall_databaseThatCannotBeAskedAgainLeavesTheCallUnknown(t *testing.T) {
	proxy := newProxy(t, pgtest.Direct(t, pgtest.NewURL(t)))
	r := rigOn(t, pgtest.Pool(t, proxy.URL()))
	b := newLedgerBank(t, false, hangUpAfter)
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		if _, err := idem.Call(req.Context(), charge(), b.charge); err != nil {
			if !errors.Is(err, idem.ErrOutcomeUnknown) || !errors.Is(err, idem.ErrUnavailable) {
				t.Error(err)
			}
			http.Error(w, "payment failed", http.StatusPaymentRequired)
		}
	})
	r.serve()
	cut := cutAtReply(proxy, ") as theirs")
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	if cut.Visits() == 0 {
		t.Error("nothing was cut")
	}
	r.want(r.send(post("/pay", "k", "{}")), 200, "")
}

func TestCall_endsWhileTheFinalTransactionIsOpen(t *testing.T) {
	r := newRig(t)
	b := newLedgerBank(t, true)
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		in, out, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := idem.Call(req.Context(), keyless(), func(ctx context.Context, key string) (receipt, error) {
				close(in)
				got, err := b.charge(ctx, key)
				<-out
				return got, err
			})
			done <- err
		}()
		<-in
		if err := insertOrder(req); err != nil {
			t.Error(err)
		}
		close(out)
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 201, "")
	if status, _, _ := r.effect(); status != "applied" {
		t.Errorf("the effect is %s", status)
	}
}

// What cannot be remembered of a request that has charged is not told as if nothing had
// happened.
func TestLease_answerThatCannotBeKeptAfterACall(t *testing.T) {
	route := onALease
	route.MaxHeld, route.MaxStored = 1000, 1000
	for name, answer := range map[string]http.HandlerFunc{
		"too large to hold": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2000)) },
		"rolled back": func(w http.ResponseWriter, req *http.Request) {
			_ = idem.Tx(req.Context()).Rollback(req.Context())
			w.WriteHeader(http.StatusCreated)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b := newLedgerBank(t, false)
			r.handle("/pay", route, func(w http.ResponseWriter, req *http.Request) {
				if _, err := idem.Call(req.Context(), charge(), b.charge); err != nil {
					t.Error(err)
				}
				answer(w, req)
			})
			r.serve()
			for range 2 {
				r.want(r.send(post("/pay", "k", "{}")), 503, "unavailable")
			}
			r.want(r.send(post("/pay", "k", "[]")), 409, "key-mismatch")
			if status, _, _ := r.effect(); status != "applied" {
				t.Errorf("the effect is %s", status)
			}
		})
	}
}

// A transaction of the handler's own that is left open holds the claim, so the answer
// cannot be stored; the handler is not run again inside the request.
func TestLease_ownTransactionLeftOpenIsUnavailable(t *testing.T) {
	long(t)
	t.Parallel()
	r := newRig(t)
	var runs atomic.Int64
	left := make(chan pgx.Tx, 1)
	r.handle("/x", idemhttp.Route{Lease: 20 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		tx, err := r.pool.Begin(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		left <- tx
		_, _, err = idem.Apply(req.Context(), tx, idem.Effect{Scope: "shop", Key: "a"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
		if err != nil {
			t.Error(err)
		}
		if err := insertOrder(req); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 503, "unavailable")
	if err := (<-left).Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	r.wantRuns(&runs, 1)
	r.wantRows("select count(*) from orders", 0)
}

func TestD9_onALeaseACommitThatNoStandbyConfirmsIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	config, err := pgxpool.ParseConfig(s.url())
	if err != nil {
		t.Fatal(err)
	}
	idem.Prepare(config)
	r := rigOn(t, pgtest.PoolWith(t, config))
	var runs atomic.Int64
	in, out := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	r.handle("/orders", idemhttp.Route{Lease: 5 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		if !once.Swap(true) {
			close(in)
			<-out
		}
		createOrder(&runs)(w, req)
	})
	r.serve()
	answer := r.begin(post("/orders", "k", body))
	<-in // the claim is committed
	s.must("alter system set synchronous_standby_names = 'nobody'", "select pg_reload_conf()")
	eventually(t, "the setting is there", func() bool {
		var names string
		_ = r.pool.QueryRow(t.Context(), "show synchronous_standby_names").Scan(&names)
		return names == "nobody"
	})
	close(out)
	var got reply
	eventually(t, "an answer", func() bool {
		_, _ = r.pool.Exec(t.Context(), "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
		select {
		case got = <-answer:
			return true
		default:
			return false
		}
	})
	s.must("alter system reset synchronous_standby_names", "select pg_reload_conf()")
	r.want(got, 503, "unavailable")
	r.wantRuns(&runs, 1)
}
