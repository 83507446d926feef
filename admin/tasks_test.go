package admin_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
)

var carol = admin.By{Actor: "carol@desk", Reason: "ticket 4711"}

// plantTasks plants tasks of each status, named so, finished a minute ago; those that wait
// and run were enqueued so, too, and nobody has them.
const plantTasks = `
insert into idem.tasks (kind, task_key, payload, status, cancel_at, attempts, takes, max_attempts, alone, fence, lease_until, finished_at, expires_at, last_error, errors,
       created_at, run_at)
select 'k', name, '1', status, case status when 'cancelled' then now() end, case when status in ('pending', 'running') then 1 else 3 end, 3, 3, name = 'poison', case status when 'pending' then null else gen_random_uuid() end,
       case status when 'running' then now() + interval '1 min' end,
       case when status in ('done', 'failed', 'cancelled') then now() - interval '1 min' end,
       case when status in ('done', 'failed', 'cancelled') then now() + interval '1 day' end,
       case status when 'failed' then 'no paper' end,
       '[{"attempt": 3, "at": "2026-01-01T00:00:00Z", "error": "no paper"}]', now() - interval '1 h', now() - interval '1 h'
from  (values ('pending', 'pending'), ('running', 'running'), ('done', 'done'), ('failed', 'failed'), ('poison', 'failed'),
              ('cancelled', 'cancelled')) as s (name, status)`

// withTasks is a database with them. A running task without a take is no state of a real
// one, so that it is ended before the invariants are checked.
func withTasks(t *testing.T) *idem.DB {
	t.Helper()
	db := open(t)
	exec(t, db, plantTasks)
	t.Cleanup(func() { exec(t, db, "delete from idem.tasks where status = 'running'") })
	return db
}

func exec(t *testing.T, db *idem.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool().Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// named is the one task of a key.
func named(t *testing.T, db *idem.DB, key string) admin.Task {
	t.Helper()
	found, err := admin.FindTasks(t.Context(), db, key)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: got %d tasks and error %v, want one", key, len(found), err)
	}
	return found[0]
}

// shown is all that is known of the one task of a key.
func shown(t *testing.T, db *idem.DB, key string) admin.TaskStory {
	t.Helper()
	s, err := admin.ShowTask(t.Context(), db, named(t, db, key).ID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestT17_retryByHand(t *testing.T) {
	db := withTasks(t)
	for key, want := range map[string]error{
		"failed": nil, "cancelled": nil, "poison": nil,
		"done": admin.ErrTaskDone, "pending": admin.ErrTaskUnfinished, "running": admin.ErrTaskUnfinished,
	} {
		before := named(t, db, key)
		change, err := admin.RetryTask(t.Context(), db, before.ID, carol)
		if !errors.Is(err, want) || errors.Is(err, admin.ErrRefused) != (want != nil) {
			t.Fatalf("%s: got error %v, want %v", key, err, want)
		}
		after := shown(t, db, key)
		if want != nil {
			if after.Task.Status != before.Status || after.Task.UpdatedAt != before.UpdatedAt || len(after.Audit) != 0 {
				t.Errorf("%s: it was refused, and is %+v", key, after.Task)
			}
			continue
		}
		if now := after.Task; now.Status != queue.StatusPending || now.Attempts != 0 || !now.Due || !now.FinishedAt.IsZero() || !now.ExpiresAt.IsZero() ||
			!now.CancelAt.IsZero() || !now.RunAt.After(before.RunAt) || now.Alone != before.Alone {
			t.Errorf("%s: got %+v, want it pending, due, with all its attempts, wanted again, and alone as before", key, now)
		}
		if len(after.Errors) != 1 || after.Errors[0].Error != "no paper" {
			t.Errorf("%s: got the errors %+v, want what they were", key, after.Errors)
		}
		if len(after.Audit) != 1 || after.Audit[0].ID != change.ID || change.Action != "task_retry" || change.Key != strconv.FormatInt(before.ID, 10) ||
			change.Actor != carol.Actor || !strings.Contains(string(change.Detail), `"attempts": 3`) {
			t.Errorf("%s: got the audit %+v and %s", key, after.Audit, change.Detail)
		}
	}
}

func TestT17_cancelByHand(t *testing.T) {
	db := withTasks(t)
	for key, want := range map[string]struct {
		status queue.Status
		asked  bool
		err    error
	}{
		"pending":   {status: queue.StatusCancelled},
		"running":   {status: queue.StatusRunning, asked: true},
		"done":      {queue.StatusDone, false, admin.ErrTaskFinished},
		"failed":    {queue.StatusFailed, false, admin.ErrTaskFinished},
		"cancelled": {queue.StatusCancelled, false, admin.ErrTaskFinished},
	} {
		change, asked, err := admin.CancelTask(t.Context(), db, named(t, db, key).ID, carol)
		if !errors.Is(err, want.err) || asked != want.asked {
			t.Fatalf("%s: got asked %v and error %v, want %+v", key, asked, err, want)
		}
		now := shown(t, db, key)
		if now.Task.Status != want.status || asked && now.Task.CancelAt.IsZero() {
			t.Errorf("%s: got %+v, want %+v", key, now.Task, want)
		}
		if lines := len(now.Audit); (lines == 1) != (want.err == nil) || want.err == nil && change.Action != "task_cancel" {
			t.Errorf("%s: got %d lines of audit and %+v", key, lines, change)
		}
		if key == "pending" && (now.Task.ExpiresAt.Before(now.Task.FinishedAt.Add(24*time.Hour)) || now.Task.FinishedAt.IsZero()) {
			t.Errorf("it is kept from %v to %v, want a day at least", now.Task.FinishedAt, now.Task.ExpiresAt)
		}
	}
}

func TestTasks_whatIsNotThereIsTold(t *testing.T) {
	db := withTasks(t)
	_, cancelErr := func() (admin.Change, error) {
		change, _, err := admin.CancelTask(t.Context(), db, 1<<40, carol)
		return change, err
	}()
	_, retryErr := admin.RetryTask(t.Context(), db, 1<<40, carol)
	_, showErr := admin.ShowTask(t.Context(), db, 1<<40)
	for doing, err := range map[string]error{"cancel": cancelErr, "retry": retryErr, "show": showErr} {
		if !errors.Is(err, admin.ErrNoTask) {
			t.Errorf("%s: got error %v, want %v", doing, err, admin.ErrNoTask)
		}
	}
	for name, by := range map[string]admin.By{"no actor": {Reason: "r"}, "no reason": {Actor: "a"}} {
		if _, err := admin.RetryTask(t.Context(), db, named(t, db, "failed").ID, by); !errors.Is(err, admin.ErrAudit) {
			t.Errorf("%s: got error %v, want %v", name, err, admin.ErrAudit)
		}
		if _, err := admin.CancelTasks(t.Context(), db, admin.TaskFilter{}, by, nil); !errors.Is(err, admin.ErrAudit) {
			t.Errorf("%s: got error %v, want %v", name, err, admin.ErrAudit)
		}
	}
	for name, filter := range map[string]admin.TaskFilter{
		"a status": {Status: "lost"}, "a queue": {Queue: "a b"}, "a kind": {Kind: strings.Repeat("k", 129)}, "a limit": {Limit: 1001},
	} {
		if _, err := admin.ListTasks(t.Context(), db, filter); !errors.Is(err, admin.ErrFilter) {
			t.Errorf("%s: got error %v, want %v", name, err, admin.ErrFilter)
		}
	}
	for doing, err := range map[string]error{
		"retry what is done": func() error {
			_, err := admin.RetryTasks(t.Context(), db, admin.TaskFilter{Status: queue.StatusDone}, carol, nil)
			return err
		}(),
		"cancel what has failed": func() error {
			_, err := admin.CountCancellable(t.Context(), db, admin.TaskFilter{Status: queue.StatusFailed})
			return err
		}(),
	} {
		if !errors.Is(err, admin.ErrFilter) {
			t.Errorf("%s: got error %v, want %v", doing, err, admin.ErrFilter)
		}
	}
	if n := audited(t, db); n != 0 {
		t.Errorf("the audit has %d lines, want none", n)
	}
}

// A row that somebody holds is waited for a second, and then told: neither do we wait
// behind a handler's transaction, nor is it asked for what it may have finished by then.
func TestCancelTask_whatATransactionHoldsIsTold(t *testing.T) {
	db := withTasks(t)
	task := named(t, db, "running")
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "select from idem.tasks where id = $1 for no key update", task.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.CancelTask(t.Context(), db, task.ID, carol); !errors.Is(err, admin.ErrTaskBusy) {
		t.Errorf("got error %v, want %v", err, admin.ErrTaskBusy)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, asked, err := admin.CancelTask(t.Context(), db, task.ID, carol); err != nil || !asked {
		t.Errorf("after that: got asked %v and error %v", asked, err)
	}
}

func TestRetryTask_ofManyAtOnceOneWins(t *testing.T) {
	db := withTasks(t)
	id := named(t, db, "failed").ID
	results := make(chan error, 16)
	for range cap(results) {
		go func() { _, err := admin.RetryTask(t.Context(), db, id, carol); results <- err }()
	}
	won := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, admin.ErrTaskUnfinished):
			t.Error(err)
		}
	}
	if won != 1 || audited(t, db) != 1 {
		t.Errorf("%d won, with %d lines of audit; want 1 and 1", won, audited(t, db))
	}
}

// unknownEffect gives the task of a key an effect that it has called and nobody knows of.
func unknownEffect(t *testing.T, db *idem.DB, key string) {
	t.Helper()
	exec(t, db, `insert into idem.applied_effects (scope, effect_key, status, fence, downstream_key, calls, intended_at, call_until,
			cause_door, cause_scope, cause_key, owner_door, owner_scope, owner_key)
		select 'shop', $1, 'unknown', gen_random_uuid(), 'd-' || $1, 1, now() - interval '1 h', now() - interval '1 h',
			'task', queue, id::text, 'task', queue, id::text from idem.tasks where task_key = $1`, key)
}

// Whose money is in question is not left behind by a cancellation; a retry does no harm.
func TestT17_withAnUnsettledEffect(t *testing.T) {
	db := withTasks(t)
	for _, key := range []string{"pending", "failed", "running"} {
		unknownEffect(t, db, key)
	}
	if _, _, err := admin.CancelTask(t.Context(), db, named(t, db, "pending").ID, carol); !errors.Is(err, admin.ErrTaskUnsettled) {
		t.Errorf("cancel: got error %v, want %v", err, admin.ErrTaskUnsettled)
	}
	totals, err := admin.CancelTasks(t.Context(), db, admin.TaskFilter{}, carol, nil)
	if want := (admin.TaskTotals{Matched: 2, Asked: 1, Left: 1}); err != nil || totals != want {
		t.Errorf("cancel all: got %+v and error %v, want %+v", totals, err, want)
	}
	if _, err := admin.RetryTask(t.Context(), db, named(t, db, "failed").ID, carol); err != nil {
		t.Errorf("retry: got error %v", err)
	}
	if task := named(t, db, "failed"); task.Unsettled != 1 {
		t.Errorf("got %+v, want to be told of its effect", task)
	}
	if _, err := admin.SettleEffect(t.Context(), db, settlement("pending", admin.StatusAbsent)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.CancelTask(t.Context(), db, named(t, db, "pending").ID, carol); err != nil {
		t.Errorf("cancel, once it is settled: got error %v", err)
	}
}

func TestRetryTasks_inBatchesAndOnlyWhatWasThere(t *testing.T) {
	db := open(t)
	const plant = `insert into idem.tasks (queue, kind, task_key, payload, status, attempts, takes, finished_at, expires_at, last_error)
		select $1, $2, $3 || n, '1', 'failed', 10, 10, now(), now() + interval '1 day', 'no paper' from generate_series(1, $4::int) as n`
	exec(t, db, plant, "mail", "receipt", "r", 1200)
	exec(t, db, plant, "mail", "letter", "l", 300)
	exec(t, db, "update idem.tasks set status = 'done' where task_key = 'r7'")
	filter := admin.TaskFilter{Queue: "mail", Kind: "receipt"}
	if n, err := admin.CountRetryable(t.Context(), db, filter); err != nil || n != 1199 {
		t.Errorf("counted %d (%v), want 1199", n, err)
	}
	var told []admin.TaskTotals
	totals, err := admin.RetryTasks(t.Context(), db, filter, carol, func(now admin.TaskTotals) {
		if len(told) == 0 { // what fails from now on is not meant
			exec(t, db, plant, "mail", "receipt", "late", 5)
			exec(t, db, "update idem.tasks set status = 'done' where task_key = 'r9'")
		}
		told = append(told, now)
	})
	if want := (admin.TaskTotals{Matched: 1199, Changed: 1198}); err != nil || totals != want {
		t.Errorf("got %+v and error %v, want %+v", totals, err, want)
	}
	if len(told) != 4 || told[0] != (admin.TaskTotals{Matched: 1199}) || told[1].Changed != 500 {
		t.Errorf("told %+v, want the number first, and three batches", told)
	}
	var pending, letters, late, lines int
	err = db.Pool().QueryRow(t.Context(), `select count(*) filter (where status = 'pending' and attempts = 0), count(*) filter (where kind = 'letter' and status = 'failed'),
		count(*) filter (where task_key like 'late%' and status = 'failed'), (select count(*) from idem.audit where action = 'task_retry') from idem.tasks`).
		Scan(&pending, &letters, &late, &lines)
	if err != nil || pending != 1198 || letters != 300 || late != 5 || lines != 1198 {
		t.Errorf("%d are pending, %d letters and %d late ones failed, %d lines of audit (%v); want 1198, 300, 5, 1198", pending, letters, late, lines, err)
	}
}

func TestListTasks_pagesAndFilters(t *testing.T) {
	db := withTasks(t)
	exec(t, db, `insert into idem.tasks (queue, kind, task_key, payload, cause_door, cause_scope, cause_key)
		select 'mail', 'receipt', 'r' || n, '{}', 'request', 'alice', 'order-' || n % 2 from generate_series(1, 10) as n`)
	for name, tt := range map[string]struct {
		filter admin.TaskFilter
		want   int
	}{
		"all":        {admin.TaskFilter{}, 16},
		"a queue":    {admin.TaskFilter{Queue: "mail"}, 10},
		"a kind":     {admin.TaskFilter{Kind: "k"}, 6},
		"a status":   {admin.TaskFilter{Status: queue.StatusFailed}, 2},
		"a key":      {admin.TaskFilter{Key: "r3"}, 1},
		"a cause":    {admin.TaskFilter{Cause: admin.Intent{Key: "order-1"}}, 5},
		"another's":  {admin.TaskFilter{Cause: admin.Intent{Door: "task", Key: "order-1"}}, 0},
		"of bob":     {admin.TaskFilter{Cause: admin.Intent{Scope: "bob"}}, 0},
		"the old":    {admin.TaskFilter{CreatedBefore: time.Now().Add(-time.Minute)}, 6},
		"nothing":    {admin.TaskFilter{Queue: "mail", Kind: "k"}, 0},
		"the newest": {admin.TaskFilter{Limit: 3}, 3},
	} {
		if got, err := admin.ListTasks(t.Context(), db, tt.filter); err != nil || len(got) != tt.want {
			t.Errorf("%s: got %d tasks (%v), want %d", name, len(got), err, tt.want)
		}
	}
	var ids []int64
	for filter := (admin.TaskFilter{Limit: 5}); ; {
		page, err := admin.ListTasks(t.Context(), db, filter)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, task := range page {
			ids = append(ids, task.ID)
		}
		filter.Before = page[len(page)-1].ID
	}
	for i := range ids {
		if len(ids) != 16 || i > 0 && ids[i] >= ids[i-1] {
			t.Fatalf("the pages hold %v, want each of 16 once, newest first", ids)
		}
	}
}

func TestEnqueueTask_asTheProgramDoes(t *testing.T) {
	db := open(t)
	task := admin.NewTask{Kind: "receipt.send", Key: "receipt:1", Payload: []byte(`{"order":1}`), Options: queue.Options{Queue: "mail", Priority: 2}}
	first, err := admin.EnqueueTask(t.Context(), db, task, carol)
	if err != nil || first.Outcome != queue.New {
		t.Fatalf("got %+v and error %v, want a new one", first, err)
	}
	again, err := admin.EnqueueTask(t.Context(), db, task, carol)
	if err != nil || again.Outcome != queue.Duplicate || again.ID != first.ID {
		t.Errorf("got %+v and error %v, want a duplicate", again, err)
	}
	type receipt struct {
		Order int `json:"order"`
	}
	kind := queue.Define[receipt]("receipt.send", queue.Options{Queue: "mail"})
	if same, err := kind.Enqueue(t.Context(), db.Pool(), "receipt:1", receipt{1}); err != nil || same.ID != first.ID || same.Outcome != queue.Duplicate {
		t.Errorf("the program's own: got %+v and error %v, want a duplicate", same, err)
	}
	task.Payload = []byte(`{"order":2}`)
	if other, err := admin.EnqueueTask(t.Context(), db, task, carol); !errors.Is(err, queue.ErrMismatch) || other.ID != first.ID {
		t.Errorf("got %+v and error %v, want a mismatch", other, err)
	}
	task.Key, task.Delay = queue.Unkeyed, -time.Second
	if _, err := admin.EnqueueTask(t.Context(), db, task, carol); !errors.Is(err, queue.ErrTaskInvalid) {
		t.Errorf("a negative delay: got error %v", err)
	}
	if _, err := admin.EnqueueTask(t.Context(), db, task, admin.By{Actor: "a"}); !errors.Is(err, admin.ErrAudit) {
		t.Errorf("without a reason: got error %v", err)
	}
	s, err := admin.ShowTask(t.Context(), db, first.ID)
	if err != nil || len(s.Audit) != 1 || s.Audit[0].Action != "task_enqueue" || s.Task.Priority != 2 || string(s.Payload) != `{"order":1}` {
		t.Errorf("got %+v and error %v", s, err)
	}
	if n := audited(t, db); n != 1 {
		t.Errorf("the audit has %d lines, want 1", n)
	}
}

func TestPauseQueue_isWrittenDown(t *testing.T) {
	db := withTasks(t)
	pause := func() error { _, err := admin.PauseQueue(t.Context(), db, "default", carol); return err }
	resume := func() error { _, err := admin.ResumeQueue(t.Context(), db, "default", carol); return err }
	for i, step := range []struct {
		do   func() error
		want error
	}{{resume, admin.ErrNotPaused}, {pause, nil}, {pause, admin.ErrPaused}, {resume, nil}, {resume, admin.ErrNotPaused}, {pause, nil}} {
		if err := step.do(); !errors.Is(err, step.want) {
			t.Errorf("step %d: got error %v, want %v", i, err, step.want)
		}
	}
	if task := named(t, db, "pending"); !task.Paused {
		t.Errorf("got %+v, want to be told that its queue is paused", task)
	}
	if n := audited(t, db); n != 3 {
		t.Errorf("the audit has %d lines, want 3", n)
	}
	for name, queue := range map[string]string{"empty": "", "a newline": "a\nb"} {
		if _, err := admin.PauseQueue(t.Context(), db, queue, carol); !errors.Is(err, admin.ErrFilter) {
			t.Errorf("%s: got error %v, want %v", name, err, admin.ErrFilter)
		}
	}
}

func TestQueuesWithTasks(t *testing.T) {
	db := open(t)
	if has, names, err := admin.QueuesWithTasks(t.Context(), db, "mail"); err != nil || has || names == nil || len(names) > 0 {
		t.Errorf("of none: got %v, %q and error %v", has, names, err)
	}
	exec(t, db, `insert into idem.tasks (queue, kind, task_key, payload)
		select queue, 'k', key, '1' from unnest(array['money', 'default', 'Money']) as q (queue), unnest(array['a', 'b', null]) as k (key)`)
	for name, want := range map[string]bool{"money": true, "Money": true, "default": true, "mail": false} {
		has, names, err := admin.QueuesWithTasks(t.Context(), db, name)
		if err != nil || has != want || !slices.Equal(names, []string{"Money", "default", "money"}) {
			t.Errorf("%s: got %v, %q and error %v", name, has, names, err)
		}
	}
	if _, _, err := admin.QueuesWithTasks(t.Context(), db, "a b"); !errors.Is(err, admin.ErrFilter) {
		t.Errorf("got error %v, want %v", err, admin.ErrFilter)
	}
}
