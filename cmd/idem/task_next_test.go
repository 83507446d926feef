package main

import (
	"strings"
	"testing"
)

// unfinishedTasks are tasks that are not finished, in a queue that is paused and one that is
// not, and what the last of them has called.
const unfinishedTasks = `
with left_behind as (
    insert into idem.tasks (id, queue, kind, task_key, payload, status, attempts, takes, max_attempts, fence, lease_until, cancel_at)
    overriding system value
    select id, queue, 'letter', name, '1', 'running', attempts, 1, 3, gen_random_uuid(), clock_timestamp() + lease,
           case when asked then clock_timestamp() end
    from (values (201, 'mail', 'left', 0, false, interval '-1 minute'), (202, 'mail', 'last', 2, false, interval '-1 minute'),
                 (203, 'paused', 'left-paused', 0, false, interval '-1 minute'), (204, 'mail', 'asked', 0, true, interval '1 hour'),
                 (205, 'paused', 'asked-paused', 0, true, interval '-1 minute'),
                 (206, 'mail', 'called', 0, true, interval '-1 minute'), (207, 'mail', 'doubtful', 0, true, interval '-1 minute'),
                 (208, 'mail', 'called-last', 2, false, interval '-1 minute')
         ) as v (id, queue, name, attempts, asked, lease)
    returning id, queue, fence, lease_until)
insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
select fence, gen_random_uuid(), queue, lease_until - interval '30 seconds', lease_until, 1, array[id] from left_behind;

insert into idem.tasks (id, queue, kind, task_key, payload, attempts, takes) overriding system value
values (209, 'paused', 'letter', 'called-paused', '1', 1, 1);

insert into idem.applied_effects (scope, effect_key, status, calls, fence, downstream_key, intended_at, call_until, keyed_until, owner_door, owner_scope, owner_key,
                                  cause_door, cause_scope, cause_key)
select 'post', key, status, 1, gen_random_uuid(), gen_random_uuid(), clock_timestamp() - interval '2 minutes', clock_timestamp() - interval '1 minute',
       case status when 'started' then timestamptz '2999-01-01 00:00:00+00' end, 'task', queue, id::text, 'task', queue, id::text
from (values (206, 'mail', 'letter:206', 'started'), (207, 'mail', 'letter:207', 'unknown'),
             (208, 'mail', 'letter:208', 'started'), (209, 'paused', 'letter:209', 'started')) as v (id, queue, key, status)`

// withUnfinishedTasks is withTasks with unfinishedTasks, whose effects go with them before
// the invariants are checked.
func withUnfinishedTasks(t *testing.T) (url string) {
	t.Helper()
	url = withTasks(t)
	execute(t, url, unfinishedTasks)
	t.Cleanup(func() { execute(t, url, "delete from idem.applied_effects where scope = 'post'") })
	return url
}

// What is told of a task that is not finished is what will happen to it.
func TestWhy_tasksThatAreNotFinished(t *testing.T) {
	url := withUnfinishedTasks(t)
	const (
		looks  = " was running when its worker fell silent; the next worker of its queue that looks "
		asked  = " is a duplicate of a task that is about to be "
		resume = "its queue is paused, so nothing takes it before idem tasks resume paused --reason TEXT"
	)
	for key, parts := range map[string][]string{
		"left": {"left of mail (task 201)" + looks + "makes it pending again, for one that handles letter.\n",
			"which is over: the next worker of its queue that looks makes it pending again, for one that handles letter\n",
			"No. Both would run.", "running, its worker is gone\n"},
		"last":         {"last of mail (task 202)" + looks + "makes it a dead letter: that was its last attempt.\n", asked + "failed.", "No, not before it is failed"},
		"left-paused":  {"left-paused of paused (task 203)" + looks + "makes it pending again; " + resume + ".\n"},
		"asked":        {"asked of mail (task 204) is running now; its cancellation was asked for, so no other attempt follows.\n", asked + "cancelled.", "idem tasks retry 204 --reason TEXT", "running, to be cancelled\n"},
		"asked-paused": {"asked-paused of paused (task 205)" + looks + "cancels it, as was asked for.\n", asked + "cancelled.", "No, not before it is cancelled", "running, its worker is gone, to be cancelled\n"},
		"called":       {"The task is to be cancelled, so that nobody repeats it by itself: once it is, idem tasks retry 206 --reason TEXT calls again with the same downstream key, until 2999-01-01T00:00:00Z."},
		"doubtful":     {"; and then, to go on, once the task is cancelled: idem tasks retry 207 --reason TEXT\n"},
		"called-last":  {"The next attempt of task 208 of mail, or, if this was its last, idem tasks retry 208 --reason TEXT calls again"},
		"called-paused": {"called-paused of paused (task 209) waits for a worker of its queue that handles letter, after 1 of 10 attempts; " + resume + ".\n",
			"The next attempt of task 209 of paused, once its queue is resumed, calls again"},
		"report:3": {"Will run once the queue is resumed: report:3 of paused (task 106).\n"},
	} {
		got := command(t, on(url), "why", key)
		wantResult(t, got, exitDone, "")
		for _, part := range parts {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("%s: got %s\nwant %q in it", key, got.stdout, part)
			}
		}
	}
}

// So is what is told of the tasks of a request.
func TestWhy_tasksOfARequestThatAreNotFinished(t *testing.T) {
	url := withUnfinishedTasks(t)
	execute(t, url, "update idem.tasks set cause_door = 'request', cause_scope = 'alice', cause_key = 'refused' where id in (201, 204, 205)")
	got := command(t, on(url), "why", "refused").stdout
	const want = "To be cancelled: asked of mail (task 204), asked-paused of paused (task 205). Left by a worker that is gone: left of mail (task 201). " +
		"Will run once the queue is resumed: report:3 of paused (task 106).\n"
	if !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %q in it", got, want)
	}
	execute(t, url, "delete from idem.tasks where id in (106, 201)")
	if got := command(t, on(url), "why", "refused").stdout; !strings.Contains(got, "No. asked of mail (task 204), which it has caused, is not cancelled yet: it might be done a second time.\n") {
		t.Errorf("got %s, want a cancellation that is awaited", got)
	}
}
