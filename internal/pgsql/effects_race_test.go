package pgsql_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// claimed is a database with one claim, on a long lease.
type claimed struct {
	t     *testing.T
	pool  *pgxpool.Pool
	fence uuid.UUID
}

func newClaimed(t *testing.T) claimed {
	c := claimed{t, pgtest.New(t), uuid.New()}
	c.exec(keys.Lease, "s", "k", c.fence, int16(1), make([]byte, 32), 60.0, 60.0, "", "")
	return c
}

func (c claimed) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.pool.Exec(c.t.Context(), sql, args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c claimed) scan(dest any, sql string) {
	c.t.Helper()
	if err := c.pool.QueryRow(c.t.Context(), sql).Scan(dest); err != nil {
		c.t.Fatal(err)
	}
}

// whileARenewalCommits runs do so that its statement waits for a renewal of the claim
// that commits then: what it finds is newer than its snapshot.
func (c claimed) whileARenewalCommits(do func()) {
	c.t.Helper()
	c.whileItCommits(do, keys.Renew, []string{"s"}, []string{"k"}, []string{c.fence.String()}, []float64{60}, []float64{60})
}

// whileItCommits runs do so that its statement waits for another one, which commits then.
func (c claimed) whileItCommits(do func(), sql string, args ...any) {
	c.t.Helper()
	tx, err := c.pool.Begin(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(c.t.Context()) }()
	if _, err = tx.Exec(c.t.Context(), sql, args...); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	limit := time.After(10 * time.Second)
	for waiting := 0; waiting == 0; {
		c.scan(&waiting, "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
		select {
		case <-limit:
			c.t.Fatal("the statement does not wait for the other one")
		default:
		}
	}
	if err := tx.Commit(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	<-done
}

func TestEffectStart_bindsAClaimThatIsRenewedMeanwhile(t *testing.T) {
	c := newClaimed(t)
	var bound bool
	c.whileARenewalCommits(func() {
		c.exec(effects.Start, "shop", "e", nil, "dk", 10.0, nil, "s", "k", c.fence, "request")
	})
	if c.scan(&bound, "select bound from idem.idempotency_keys"); !bound {
		t.Error("the effect has started and its claim is not bound")
	}
	c.exec(effects.Retract, "shop", "e", c.fence, "refused", "s", "k", 1, "request")
	c.exec("update idem.idempotency_keys set bound = false")
	c.whileARenewalCommits(func() {
		c.exec(effects.Restart, "shop", "e", c.fence, "dk", 10.0, nil, "s", "k", c.fence, 1, "request")
	})
	if c.scan(&bound, "select bound from idem.idempotency_keys"); !bound {
		t.Error("the effect has started again and its claim is not bound")
	}
}

// A statement about an earlier call of the same claim that arrives late says nothing of
// the call after it.
func TestEffectRetract_isOfOneCall(t *testing.T) {
	c := newClaimed(t)
	c.exec(effects.Start, "shop", "e", nil, "dk", 10.0, nil, "s", "k", c.fence, "request")
	c.exec(effects.Retract, "shop", "e", c.fence, "refused", "s", "k", 1, "request")
	c.exec(effects.Restart, "shop", "e", c.fence, "dk", 10.0, nil, "s", "k", c.fence, 1, "request")
	for _, late := range []string{effects.Retract, effects.Doubt} {
		c.exec(late, "shop", "e", c.fence, "too late", "s", "k", 1, "request")
	}
	c.exec(effects.Record, "shop", "e", c.fence, []byte("1"), "s", "k", 1, "request")
	var status string
	if c.scan(&status, "select status from idem.applied_effects"); status != "started" {
		t.Errorf("the second call is %s by what the first has come to", status)
	}
	c.exec(effects.Record, "shop", "e", c.fence, []byte("2"), "s", "k", 2, "request")
	var result []byte
	if c.scan(&result, "select result from idem.applied_effects where status = 'applied'"); string(result) != "2" {
		t.Errorf("recorded %q", result)
	}
}

// What the last call may take counts, and what one before it may, too: a process that
// was frozen can still be at it.
func TestEffectRestart_keepsTheLongerTime(t *testing.T) {
	c := newClaimed(t)
	window := 3600.0
	c.exec(effects.Start, "shop", "e", nil, "dk", 600.0, &window, "s", "k", c.fence, "request")
	c.exec(effects.Restart, "shop", "e", c.fence, "dk", 1.0, &window, "s", "k", c.fence, 1, "request")
	var long bool
	c.scan(&long, "select call_until > clock_timestamp() + interval '5 minutes' and calls = 2 from idem.applied_effects")
	if !long {
		t.Error("the first call's time was forgotten")
	}
}

// The statements of an owner whose key was taken over change nothing.
func TestEffects_ofAnOldFenceChangeNothing(t *testing.T) {
	c := newClaimed(t)
	window := 3600.0
	old, successor := c.fence, uuid.New()
	c.exec(effects.Start, "shop", "e", nil, "dk", 10.0, &window, "s", "k", old, "request")
	c.exec(keys.Abandon, "s", "k", old, 60.0)
	c.exec(keys.Retake, "s", "k", successor, int16(1), make([]byte, 32), 60.0, 60.0, old, true, "", "")
	for name, late := range map[string]func(){
		"record":  func() { c.exec(effects.Record, "shop", "e", old, []byte("1"), "s", "k", 1, "request") },
		"retract": func() { c.exec(effects.Retract, "shop", "e", old, "why", "s", "k", 1, "request") },
		"doubt":   func() { c.exec(effects.Doubt, "shop", "e", old, "why", "s", "k", 1, "request") },
		"restart": func() { c.exec(effects.Restart, "shop", "e", old, "dk", 10.0, &window, "s", "k", old, 1, "request") },
		"start":   func() { c.exec(effects.Start, "shop", "other", nil, "dk", 10.0, &window, "s", "k", old, "request") },
		"answer":  func() { c.exec(keys.Complete, "s", "k", old, 201, [][]byte{}, []byte("x"), nil, 60.0, nil, true) },
	} {
		late()
		var same bool
		err := c.pool.QueryRow(t.Context(), `select e.status = 'started' and e.calls = 1 and e.fence = $1 and k.fence = $2 and k.state = 'claimed'
			from idem.applied_effects as e, idem.idempotency_keys as k`, old, successor).Scan(&same)
		if err != nil || !same {
			t.Fatalf("%s of an old fence has changed something (%v)", name, err)
		}
	}
}

// runs makes a task that is running on a long lease, under the fence of the claim, and
// returns its id as text.
func (c claimed) runs(queue string, id int) string {
	c.t.Helper()
	c.exec(`insert into idem.tasks (id, queue, kind, payload, status, fence, lease_until)
		values ($1, $2, 'x', '', 'running', $3, clock_timestamp() + interval '1 minute')`, id, queue, c.fence)
	c.t.Cleanup(func() { _, _ = c.pool.Exec(context.Background(), "delete from idem.tasks") }) // no worker has it
	return fmt.Sprint(id)
}

// effect reads what a task or a claim is told of the effect e.
func (c claimed) effect(by ...any) (status string, calls int, theirs bool) {
	c.t.Helper()
	err := c.pool.QueryRow(c.t.Context(), effects.Read, append([]any{"shop", "e"}, by...)...).
		Scan(&status, nil, nil, nil, nil, &calls, &theirs, nil, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return status, calls, theirs
}

// The tasks of one take have one fence: what one of them has started is not the other's.
func TestEffects_ofATaskAreNotThoseOfAnotherOfItsTake(t *testing.T) {
	c := newClaimed(t)
	window := 3600.0
	one, other := c.runs("q", 1), c.runs("q", 2)
	c.exec(effects.Start, "shop", "e", nil, "dk", 10.0, &window, "q", one, c.fence, "task")
	if status, calls, theirs := c.effect(c.fence, "task", "q", one); status != "started" || calls != 1 || theirs {
		t.Errorf("its own effect is %s after %d calls, theirs: %v", status, calls, theirs)
	}
	for name, by := range map[string][]any{"another task": {c.fence, "task", "q", other}, "a claim": {c.fence, "request", "q", one}, "nobody": {nil, nil, nil, nil}} {
		if _, _, theirs := c.effect(by...); !theirs {
			t.Errorf("for %s the effect is not another's", name)
		}
	}
	for _, late := range []string{effects.Retract, effects.Doubt, effects.Record} {
		c.exec(late, "shop", "e", c.fence, []byte("no"), "q", other, 1, "task")
		if status, _, _ := c.effect(nil, nil, nil, nil); status != "started" {
			t.Fatalf("the other task has made the effect %s", status)
		}
	}
	c.exec(effects.Record, "shop", "e", c.fence, []byte("1"), "q", one, 1, "task")
	if status, _, _ := c.effect(nil, nil, nil, nil); status != "applied" {
		t.Errorf("the task's own result was not recorded: %s", status)
	}
}

// A claim and a task that are called the same, by a fence that is the same, are two.
func TestEffects_ofAClaimAreNotThoseOfATaskOfItsName(t *testing.T) {
	for door, other := range map[string]string{"request": "task", "task": "request"} {
		t.Run(door, func(t *testing.T) {
			c := newClaimed(t)
			c.exec("update idem.idempotency_keys set scope = 'q', key = '7'")
			c.runs("q", 7)
			c.exec(effects.Start, "shop", "e", nil, "dk", 10.0, nil, "q", "7", c.fence, door)
			for _, late := range []string{effects.Retract, effects.Doubt, effects.Record} {
				c.exec(late, "shop", "e", c.fence, []byte("no"), "q", "7", 1, other)
			}
			if status, _, theirs := c.effect(c.fence, other, "q", "7"); status != "started" || !theirs {
				t.Errorf("for the %s the effect is %s, theirs: %v", other, status, theirs)
			}
			var bound bool
			if c.scan(&bound, "select bound from idem.idempotency_keys"); bound != (door == "request") {
				t.Errorf("the claim is bound: %v", bound)
			}
			if door == "request" { // the task is not needed for it
				c.exec("delete from idem.tasks")
			} else {
				c.exec("update idem.idempotency_keys set lease_until = clock_timestamp(), expires_at = clock_timestamp() - interval '1 second', created_at = created_at - interval '1 hour'")
				c.exec(keys.Expire, "q", "7")
				c.want("select count(*) from idem.idempotency_keys", 0) // no effect of its own holds it
			}
			if _, _, theirs := c.effect(nil, nil, nil, nil); !theirs {
				t.Error("the effect's owner lives and is not found")
			}
			c.exec(effects.Record, "shop", "e", c.fence, []byte("1"), "q", "7", 1, door)
			if status, _, _ := c.effect(nil, nil, nil, nil); status != "applied" {
				t.Errorf("its own result was not recorded: %s", status)
			}
		})
	}
}

func (c claimed) want(sql string, n int) {
	c.t.Helper()
	var got int
	if c.scan(&got, sql); got != n {
		c.t.Errorf("%s: %d, want %d", sql, got, n)
	}
}

// The statements of a worker that has lost its task change nothing.
func TestEffects_ofATaskThatWasLostChangeNothing(t *testing.T) {
	c := newClaimed(t)
	window, id, old := 3600.0, c.runs("q", 1), c.fence
	c.exec(effects.Start, "shop", "e", nil, "dk", 10.0, &window, "q", id, old, "task")
	for how, lost := range map[string]string{
		"taken by another": "status = 'running', fence = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 minute'",
		"given back":       "status = 'pending', fence = null, lease_until = null",
	} {
		c.exec("update idem.tasks set " + lost)
		for name, late := range map[string]func(){
			"record":       func() { c.exec(effects.Record, "shop", "e", old, []byte("1"), "q", id, 1, "task") },
			"retract":      func() { c.exec(effects.Retract, "shop", "e", old, "why", "q", id, 1, "task") },
			"doubt":        func() { c.exec(effects.Doubt, "shop", "e", old, "why", "q", id, 1, "task") },
			"restart":      func() { c.exec(effects.Restart, "shop", "e", old, "dk", 10.0, &window, "q", id, old, 1, "task") },
			"start":        func() { c.exec(effects.Start, "shop", "other", nil, "dk", 10.0, &window, "q", id, old, "task") },
			"find applied": func() { c.exec(effects.FindApplied, "shop", "e", old, []byte("1"), "q", id, "task") },
			"find absent":  func() { c.exec(effects.FindAbsent, "shop", "e", old, "q", id, old, 1, "task") },
		} {
			late()
			c.want("select count(*) from idem.applied_effects where status = 'started' and calls = 1", 1)
			c.want("select count(*) from idem.applied_effects", 1)
			if t.Failed() {
				t.Fatalf("%s of a task that was %s has changed something", name, how)
			}
		}
		if _, _, theirs := c.effect(nil, nil, nil, nil); theirs {
			t.Errorf("of a task that was %s the effect is still in flight", how)
		}
	}
	c.exec("update idem.tasks set status = 'running', fence = $1, lease_until = clock_timestamp() + interval '1 minute'", uuid.New())
	c.exec("update idem.applied_effects set status = 'unknown', call_until = clock_timestamp()")
	c.exec(effects.FindApplied, "shop", "e", old, []byte("1"), "q", id, "task")
	c.exec(effects.FindAbsent, "shop", "e", old, "q", id, old, 1, "task")
	c.want("select count(*) from idem.applied_effects where status = 'unknown'", 1)
}

// While a transaction of the handler's holds the task, nobody takes it over.
func TestTaskFence_holdsTheTaskToTheEndOfTheTransaction(t *testing.T) {
	c := newClaimed(t)
	c.runs("q", 1)
	tx, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if tag, err := tx.Exec(t.Context(), tasks.Fence, "q", 1, c.fence); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	const takeOver = "update idem.tasks set fence = gen_random_uuid()"
	if _, err := c.pool.Exec(t.Context(), "begin; set local lock_timeout = '100ms'; "+takeOver+"; commit"); !strings.Contains(fmt.Sprint(err), "55P03") {
		t.Errorf("the task was taken over: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.exec(takeOver)
	if tag, err := c.pool.Exec(t.Context(), tasks.Fence, "q", 1, c.fence); err != nil || tag.RowsAffected() != 0 {
		t.Errorf("the task is held by one who has lost it: %v %v", tag, err)
	}
}

// A settlement that waits for the intention of the next call finds it: its evidence is of
// the one before.
func TestEffectSettle_isOfItsCall(t *testing.T) {
	for name, settle := range map[string]func(c claimed, calls int){
		"absent": func(c claimed, calls int) { c.exec(admin.EffectSettleAbsent, "shop", "e", "carol", "asked", calls) },
		"applied": func(c claimed, calls int) {
			c.exec(admin.EffectSettleApplied, "shop", "e", "carol", "asked", []byte("1"), calls)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClaimed(t)
			c.exec(effects.Start, "shop", "e", nil, "dk", 0.0, 3600.0, "s", "k", c.fence, "request")
			c.exec("update idem.idempotency_keys set lease_until = clock_timestamp()")
			c.whileItCommits(func() { settle(c, 1) },
				effects.Restart, "shop", "e", c.fence, "dk", 0.0, 3600.0, "s", "k", c.fence, 1, "request")
			var status string
			if c.scan(&status, "select status from idem.applied_effects where calls = 2"); status != "started" {
				t.Errorf("the second call is %s by evidence of the first", status)
			}
			settle(c, 2)
			if c.scan(&status, "select status from idem.applied_effects where calls = 2"); status != name {
				t.Errorf("the second call is %s, want %s", status, name)
			}
		})
	}
}
