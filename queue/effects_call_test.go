package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// effectBankLog is the log of the bank that a child is.
const effectBankLog = "IDEM_TEST_QUEUE_BANK"

func init() {
	children["bank"] = func() int {
		if err := bank.Child(context.Background(), os.Stdin, os.Stdout, bank.Config{Log: os.Getenv(effectBankLog)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// effectBank is a bank in a process of its own, and the keys that it was sent.
type effectBank struct {
	t testing.TB
	*bank.Process
	client bank.Client

	mu   sync.Mutex
	keys []string
}

func startEffectBank(t testing.TB) *effectBank {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=bank", effectBankLog+"="+filepath.Join(t.TempDir(), "bank.log"))
	p, err := bank.StartProcess(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &effectBank{t: t, Process: p, client: bank.Client{URL: p.URL}}
}

// charge charges once. What the bank has refused, or was never asked, is proof.
func (b *effectBank) charge(ctx context.Context, key string, o order) (bank.Receipt, error) {
	return b.chargeAt(ctx, b.URL, key, o)
}

// chargeAt is charge at another address.
func (b *effectBank) chargeAt(ctx context.Context, url, key string, o order) (bank.Receipt, error) {
	b.mu.Lock()
	b.keys = append(b.keys, key)
	b.mu.Unlock()
	return chargeAt(ctx, url, key, o)
}

func chargeAt(ctx context.Context, url, key string, o order) (bank.Receipt, error) {
	client := bank.Client{URL: url}
	got, err := client.Charge(ctx, key, o.charge())
	if errors.Is(err, bank.ErrRefused) {
		return got, idem.NotApplied(err)
	}
	return got, err
}

func (b *effectBank) faults(f bank.Faults) {
	b.t.Helper()
	if err := b.client.SetFaults(context.Background(), f); err != nil {
		b.t.Fatal(err)
	}
}

// captured is how many charges of an order the bank has captured.
func (b *effectBank) captured(o order) (n int) {
	b.t.Helper()
	receipts, err := b.client.Find(context.Background(), o.charge().Reference)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range receipts {
		if r.Status == bank.Captured {
			n++
		}
	}
	return n
}

// want fails unless the bank has captured an order so often, by so many calls, all of them
// with one key.
func (b *effectBank) want(o order, captured, calls int) {
	b.t.Helper()
	if got := b.captured(o); got != captured {
		b.t.Errorf("the bank has captured %d times, want %d", got, captured)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if keys := slices.Compact(slices.Sorted(slices.Values(b.keys))); len(b.keys) != calls || len(keys) > 1 {
		b.t.Errorf("%d calls with the keys %v, want %d with one", len(b.keys), keys, calls)
	}
}

func (o order) charge() bank.Charge {
	return bank.Charge{Reference: "charge:order:" + o.ID, Amount: 1500, Card: o.Card}
}

// effect is the charge of an order: keyed, unless the bank ignores the card's keys.
func (o order) effect() idem.Effect {
	e := idem.Effect{Scope: "shop", Key: o.charge().Reference, Input: o.charge(), Timeout: 5 * time.Second}
	if !strings.Contains(o.Card, "keyless") {
		e.Provider = idem.Keyed(time.Hour)
	}
	return e
}

// pay charges an order and posts what was charged, once each.
func (b *effectBank) pay(ctx context.Context, o order, e idem.Effect) (bank.Receipt, error) {
	receipt, err := idem.Call(ctx, e, func(ctx context.Context, key string) (bank.Receipt, error) { return b.charge(ctx, key, o) })
	if err != nil {
		return receipt, err
	}
	return receipt, postCharge(ctx, o, receipt)
}

// postCharge posts a charge in the final transaction.
func postCharge(ctx context.Context, o order, receipt bank.Receipt) error {
	e := idem.Effect{Scope: "shop", Key: "post:order:" + o.ID}
	_, _, err := idem.Apply(ctx, idem.Tx(ctx), e, func(ctx context.Context, tx pgx.Tx) (string, error) {
		_, err := tx.Exec(ctx, "insert into postings (account, amount) values ('sales', $1)", receipt.Amount)
		return receipt.ID, err
	})
	return err
}

// paying handles k by paying with the effect that change makes of the order's.
func (b *effectBank) paying(k *queue.Kind[order], change func(*idem.Effect)) func(*queue.Worker) {
	return func(w *queue.Worker) {
		k.HandleLeased(w, func(ctx context.Context, o order) error {
			e := o.effect()
			if change != nil {
				change(&e)
			}
			_, err := b.pay(ctx, o, e)
			return err
		})
	}
}

func (r *effectRig) enqueueOrder(k *queue.Kind[order], o order) int64 {
	r.t.Helper()
	e, err := k.Enqueue(r.t.Context(), r.pool, queue.Unkeyed, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return e.ID
}

// wantEffect fails unless the charge of an order is so.
func (r *effectRig) wantEffect(o order, want string) {
	r.t.Helper()
	var got string
	err := r.pool.QueryRow(context.Background(), "select status from idem.applied_effects where scope = 'shop' and effect_key = $1", o.effect().Key).Scan(&got)
	if err != nil || got != want {
		r.t.Errorf("the effect is %s, want %s (%v)", got, want, err)
	}
}

// E5: a charge in a guarded request, then the same charge from a task: the task's money
// is the request's.
func TestE5_aChargeInARequestAndThenInATaskIsOneCharge(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("the request is cut short: ", lost), func(t *testing.T) {
			t.Parallel()
			r, b := newEffectRig(t), startEffectBank(t)
			o := order{"1", "tok_ok"}
			guard, err := idemhttp.New(r.db, idemhttp.Config{Scope: idemhttp.Public()})
			if err != nil {
				t.Fatal(err)
			}
			route := idemhttp.Route{Name: "POST /payments", Lease: 2 * time.Second}
			if lost { // the bank has charged, and the handler has no time to hear of it
				b.faults(bank.Faults{DelayAfter: 2500})
				route.Limit = 2 * time.Second
			}
			pay := guard.Route(route)(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if _, err := b.pay(req.Context(), o, o.effect()); err != nil {
					http.Error(w, err.Error(), http.StatusServiceUnavailable)
					return
				}
				w.WriteHeader(http.StatusCreated)
			}))
			req := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			pay.ServeHTTP(w, req)
			if done := w.Code == http.StatusCreated; done == lost {
				t.Fatalf("the request got %d %s", w.Code, w.Body)
			}
			k := queue.Define[order]("charge", quick())
			r.work(b.paying(k, nil))
			id := r.enqueueOrder(k, o)
			r.await("the task is done", func() bool { return r.tasks(idem.TaskDone) == 1 })
			calls := 1
			if lost {
				calls = 2
			} else {
				r.awaitStatus(id, queue.StatusDone, 1)
			}
			b.want(o, 1, calls)
			r.want(1, "select count(*) from postings")
			r.want(1, "select count(*) from idem.applied_effects where effect_key like 'charge:%' and status = 'applied' and cause_door = 'request' and cause_key = 'k' and downstream_key = $1", b.keys[0])
			if lost {
				r.want(1, "select count(*) from idem.applied_effects where effect_key like 'charge:%' and owner_door = 'task' and owner_key = $1", fmt.Sprint(id))
			} else if r.effects(idem.EffectSkipped) != 2 {
				t.Errorf("%d effects were skipped, want the charge and the posting", r.effects(idem.EffectSkipped))
			}
		})
	}
}

// E6: a bank that honours keys and hangs up, or answers too late.
func TestE6_aKeyedCallOfATaskIsRepeatedWithItsKeyUntilThereIsAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		card    string
		faults  bank.Faults
		timeout time.Duration // of the handler
		again   bool          // by another attempt
	}{
		"no trouble":                           {card: "tok_ok"},
		"it has charged and hangs up":          {card: "tok_lost_reply"},
		"it loses replies again and again":     {card: "tok_ok", faults: bank.Faults{LoseReplies: 3}},
		"it charges later than the handler is": {card: "tok_ok", faults: bank.Faults{DelayBefore: 1000}, timeout: 300 * time.Millisecond, again: true},
		"it answers later than the handler is": {card: "tok_ok", faults: bank.Faults{DelayAfter: 1000}, timeout: 300 * time.Millisecond, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, b := newEffectRig(t), startEffectBank(t)
			b.faults(c.faults)
			options := quick()
			options.MaxAttempts = 1000
			if c.timeout > 0 {
				options.Timeout = c.timeout
			}
			k := queue.Define[order]("charge", options)
			r.work(b.paying(k, nil))
			o := order{"1", c.card}
			r.enqueueOrder(k, o)
			r.await("the task is done", func() bool { return r.tasks(idem.TaskDone) == 1 })
			if again := r.tasks(idem.TaskRetried) > 0; again != c.again {
				t.Errorf("there was another attempt: %v", again)
			}
			b.want(o, 1, len(b.keys))
			r.wantEffect(o, "applied")
			r.want(1, "select count(*) from postings")
			r.want(len(b.keys), "select calls from idem.applied_effects where effect_key like 'charge:%' and downstream_key = $1", b.keys[0])
		})
	}
}

// A proof of nothing lets the next attempt start the effect again, with the same key.
func TestE6_aProofOfNothingLetsTheNextAttemptStartAgain(t *testing.T) {
	t.Parallel()
	for _, card := range []string{"tok_ok", "tok_keyless"} {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			r, b := newEffectRig(t), startEffectBank(t)
			var there atomic.Bool
			k := queue.Define[order]("charge", quick())
			r.work(func(w *queue.Worker) {
				k.HandleLeased(w, func(ctx context.Context, o order) error {
					receipt, err := idem.Call(ctx, o.effect(), func(ctx context.Context, key string) (bank.Receipt, error) {
						if !there.Swap(true) { // nobody listens there
							return b.chargeAt(ctx, "http://127.0.0.1:1", key, o)
						}
						return b.charge(ctx, key, o)
					})
					if err != nil {
						return err
					}
					return postCharge(ctx, o, receipt)
				})
			})
			o := order{"1", card}
			r.awaitStatus(r.enqueueOrder(k, o), queue.StatusDone, 2)
			b.want(o, 1, 2)
			r.want(1, "select count(*) from postings")
			if r.effects(idem.EffectAbsent) != 1 || r.effects(idem.EffectUnknown) != 0 {
				t.Error("the refused call is not absent")
			}
		})
	}
}

// E7: a bank that honours no key is called once, whatever becomes of the call and however
// many attempts there are; what an operator says then counts.
func TestE7_aKeylessCallOfATaskIsNeverRepeatedByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		card   string
		faults bank.Faults
	}{
		"it has charged and hangs up":  {card: "tok_keyless_lost"},
		"it has charged and is silent": {card: "tok_keyless", faults: bank.Faults{DelayAfter: 10_000}},
	} {
		for _, settled := range []admin.Status{admin.StatusApplied, admin.StatusAbsent} {
			t.Run(fmt.Sprint(name, ", settled as ", settled), func(t *testing.T) {
				t.Parallel()
				r, b := newEffectRig(t), startEffectBank(t)
				b.faults(c.faults)
				options := quick()
				options.MaxAttempts = 3
				k := queue.Define[order]("charge", options)
				r.work(b.paying(k, func(e *idem.Effect) { e.Timeout = 1500 * time.Millisecond }))
				o := order{"1", c.card}
				r.awaitStatus(r.enqueueOrder(k, o), queue.StatusFailed, 3)
				b.want(o, 1, 1)
				r.wantEffect(o, "unknown")
				r.want(0, "select count(*) from postings")
				r.want(1, "select count(*) from idem.tasks where last_error like '%unknown%' and jsonb_array_length(errors) = 3")
				if n := r.effects(idem.EffectUnknown); n != 3 {
					t.Errorf("%d events say unknown, want 3", n)
				}
				b.faults(bank.Faults{})
				r.settle(o, settled)
				calls := 1
				if settled == admin.StatusAbsent {
					calls = 2
				}
				r.awaitStatus(r.enqueueOrder(k, o), queue.StatusDone, 1)
				b.want(o, calls, calls)
				r.want(1, "select count(*) from postings")
				r.want(1, "select count(*) from idem.audit where actor = 'ops' and reason = 'the bank said so'")
			})
		}
	}
}

// settle settles the charge of an order as an operator does.
func (r *effectRig) settle(o order, as admin.Status) {
	r.t.Helper()
	s := admin.Settlement{Scope: "shop", Key: o.effect().Key, As: as, Actor: "ops", Reason: "the bank said so"}
	if as == admin.StatusApplied {
		s.Result, _ = json.Marshal(bank.Receipt{ID: "ch_1", Reference: o.charge().Reference, Amount: 1500, Card: o.Card, Status: bank.Captured})
	}
	var err error
	r.await("the effect is settled", func() bool {
		_, err = admin.SettleEffect(context.Background(), r.db, s)
		return err == nil
	})
}

// E12: a keyed call whose window is over is not repeated by the next attempt.
func TestE12_aKeyedCallOfATaskBeyondItsWindowIsUnknown(t *testing.T) {
	t.Parallel()
	r, b := newEffectRig(t), startEffectBank(t)
	options := quick()
	options.MaxAttempts = 1
	k := queue.Define[order]("charge", options)
	r.work(func(w *queue.Worker) {
		k.HandleLeased(w, func(ctx context.Context, o order) error {
			calling, cancel := context.WithCancel(ctx)
			defer cancel()
			receipt, err := idem.Call(calling, o.effect(), func(ctx context.Context, key string) (bank.Receipt, error) {
				defer cancel() // it does not call again
				return b.charge(ctx, key, o)
			})
			if err != nil {
				return err
			}
			return postCharge(ctx, o, receipt)
		})
	})
	o := order{"1", "tok_lost_reply"}
	r.awaitStatus(r.enqueueOrder(k, o), queue.StatusFailed, 1)
	r.wantEffect(o, "started")
	r.exec(`update idem.applied_effects set created_at = created_at - interval '1 hour', intended_at = intended_at - interval '1 hour',
		call_until = call_until - interval '1 hour', keyed_until = keyed_until - interval '1 hour'`)
	for range 2 {
		r.awaitStatus(r.enqueueOrder(k, o), queue.StatusFailed, 1)
		r.wantEffect(o, "unknown")
	}
	b.want(o, 1, 1)
	r.settle(o, admin.StatusApplied)
	r.awaitStatus(r.enqueueOrder(k, o), queue.StatusDone, 1)
	b.want(o, 1, 1)
	r.want(1, "select count(*) from postings")
}

// frozenCall is a worker that is frozen in a call: it has lost its task, and its messages
// to the database are held.
type frozenCall struct {
	*effectRig // of whoever takes over
	owner      *effectRig
	kind       *queue.Kind[order]
	gate       *effectGate
	thaw       func()
	id         int64
}

// freezeInCall freezes a worker in a call of o's effect, which ends as fn says.
func freezeInCall(t *testing.T, o order, fn func() (bank.Receipt, error)) *frozenCall {
	t.Helper()
	url := pgtest.NewURL(t)
	proxy := newEffectProxy(t, pgtest.Direct(t, url))
	f := &frozenCall{effectRig: effectRigOn(t, pgtest.Pool(t, url)), owner: effectRigOn(t, pgtest.Pool(t, proxy.URL())), gate: newEffectGate(t)}
	f.exec("create table postings (account text, amount bigint)")
	options := quick()
	options.Lease = 2 * time.Second
	options.MaxAttempts = 1000
	f.kind = queue.Define[order]("charge", options)
	f.owner.work(func(w *queue.Worker) {
		f.kind.HandleLeased(w, func(ctx context.Context, o order) error {
			receipt, err := idem.Call(ctx, o.effect(), func(context.Context, string) (bank.Receipt, error) {
				f.gate.pass()
				return fn()
			})
			if err != nil {
				return err
			}
			return postCharge(ctx, o, receipt)
		})
	})
	f.id = f.enqueueOrder(f.kind, o)
	f.gate.await(t)
	held := proxy.Add(faultproxy.Rule{When: func(m faultproxy.Message) bool { return m.Direction == faultproxy.FromClient }, Times: -1, Do: faultproxy.Hold()})
	f.thaw = sync.OnceFunc(func() { held.Disarm(); held.Release() })
	t.Cleanup(f.thaw)
	return f
}

// E8: a worker that has called and lost its task cannot record over its successor,
// whatever it has learnt.
func TestE8_aFencedOutWorkerRecordsNothingOverItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]error{
		"a result": nil,
		"a proof":  idem.NotApplied(errors.New("the wrong bank")),
		"an error": errors.New("the bank hung up"),
	} {
		for _, card := range []string{"tok_ok", "tok_keyless"} {
			t.Run(card+", "+name, func(t *testing.T) {
				t.Parallel()
				o := order{"1", card}
				f := freezeInCall(t, o, func() (bank.Receipt, error) { return bank.Receipt{ID: "the owner's", Amount: 1}, ends })
				f.work(func(w *queue.Worker) {
					f.kind.HandleLeased(w, func(ctx context.Context, o order) error {
						receipt, err := idem.Call(ctx, o.effect(), func(context.Context, string) (bank.Receipt, error) {
							return bank.Receipt{ID: "the successor's", Amount: 1500}, nil
						})
						if err != nil {
							return queue.Fail(err)
						}
						return postCharge(ctx, o, receipt)
					})
				})
				status, effect := queue.StatusDone, "applied"
				if card == "tok_keyless" {
					status, effect = queue.StatusFailed, "unknown"
				}
				f.awaitStatus(f.id, status, anyAttempts)
				f.gate.open() // the owner has its result and is still frozen
				f.thaw()
				f.await("the owner's attempt has ended", func() bool { return f.owner.tasks(idem.TaskLeaseLost) == 1 })
				f.wantEffect(o, effect)
				f.awaitStatus(f.id, status, anyAttempts)
				if f.owner.effects(idem.EffectApplied)+f.owner.effects(idem.EffectAbsent) != 0 {
					t.Error("the owner says that it has recorded something")
				}
				if effect == "applied" {
					f.want(1, "select count(*) from idem.applied_effects where effect_key like 'charge:%' and convert_from(result, 'UTF8') like '%successor%'")
					f.want(1500, "select sum(amount)::integer from postings")
				}
			})
		}
	}
}

// E14: absence is not believed while the lost worker's call may be under way.
func TestE14_absenceIsNotBelievedWhileALostWorkersCallMayBeUnderWay(t *testing.T) {
	t.Parallel()
	b := startEffectBank(t)
	o := order{"1", "tok_keyless"}
	f := freezeInCall(t, o, func() (bank.Receipt, error) { return bank.Receipt{}, errors.New("too late") })
	var asked atomic.Int64
	f.work(b.paying(f.kind, func(e *idem.Effect) {
		e.Reconcile = func(context.Context, string) (idem.Evidence, error) {
			asked.Add(1)
			return idem.Missing(), nil
		}
	}))
	f.await("the bank was asked again and again", func() bool { return asked.Load() >= 3 })
	f.wantEffect(o, "unknown")
	b.want(o, 0, 0)
	f.exec("update idem.applied_effects set call_until = clock_timestamp()") // the deadline has passed
	f.await("the task is done", func() bool { return f.tasks(idem.TaskDone) == 1 })
	b.want(o, 1, 1)
	f.wantEffect(o, "applied")
	f.want(1, "select count(*) from postings")
	f.gate.open()
	f.thaw()
	f.await("the owner's attempt has ended", func() bool { return f.owner.tasks(idem.TaskLeaseLost) == 1 })
	f.wantEffect(o, "applied")
}

// Evidence of a result is believed at once, and recorded.
func TestE14_evidenceOfAResultEndsTheTask(t *testing.T) {
	t.Parallel()
	r, b := newEffectRig(t), startEffectBank(t)
	k := queue.Define[order]("charge", quick())
	o := order{"1", "tok_keyless_lost"}
	r.work(b.paying(k, func(e *idem.Effect) {
		e.Reconcile = func(ctx context.Context, _ string) (idem.Evidence, error) {
			found, err := b.client.Find(ctx, o.charge().Reference)
			if err != nil || len(found) == 0 {
				return idem.Evidence{}, err
			}
			return idem.Found(found[0]), nil
		}
	}))
	r.awaitStatus(r.enqueueOrder(k, o), queue.StatusDone, 2)
	b.want(o, 1, 1)
	r.want(1, "select count(*) from postings")
}
