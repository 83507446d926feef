package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// withTasks returns a database that holds what testdata/tasks.sql says. What has been
// running for too long by now is ended before the invariants are checked.
func withTasks(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.NewURL(t)
	sql, err := os.ReadFile(filepath.Join("testdata", "tasks.sql"))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, string(sql))
	t.Cleanup(func() { execute(t, url, "delete from idem.tasks where status = 'running'; delete from idem.takes") })
	return url
}

func TestTasks_output(t *testing.T) {
	url := withTasks(t)
	tests := map[string][]string{
		"tasks_list":              {"tasks", "list"},
		"tasks_list_json":         {"tasks", "list", "--queue", "money", "--json"},
		"tasks_list_status":       {"tasks", "list", "--status", "failed"},
		"tasks_list_cause":        {"tasks", "list", "--cause", "102", "--cause-scope", "money"},
		"tasks_list_before":       {"tasks", "list", "--before", "103", "--kind", "refund"},
		"tasks_list_older":        {"tasks", "list", "--before", "2026-03-02T10:00:05Z"},
		"tasks_show_pending":      {"tasks", "show", "receipt:17"},
		"tasks_show_pending_json": {"tasks", "show", "101", "--json"},
		"tasks_show_running":      {"tasks", "show", "104", "--payload"},
		"tasks_show_running_json": {"tasks", "show", "104", "--payload", "--json"},
		"tasks_show_failed":       {"tasks", "show", "refund:17", "--queue", "money"},
		"tasks_show_done":         {"tasks", "show", "103", "--payload"},
		"tasks_show_done_json":    {"tasks", "show", "103", "--payload", "--json"},
		"tasks_show_cancelled":    {"tasks", "show", "report:2"},
		"why_order":               {"why", "order-17"},
		"why_order_json":          {"why", "order-17", "--json"},
		"why_refund":              {"why", "refund-17"},
		"why_refused_task":        {"why", "refused"},
		"why_task_of_request":     {"why", "refund:17"},
		"why_task_follow_up":      {"why", "103"},
		"why_effect_of_task":      {"why", "refund:payment:17"},
		"why_task_running":        {"why", "report:1"},
		"why_task_cancelled":      {"why", "105"},
		"why_task_left":           {"why", "107"},
		"why_task_left_json":      {"why", "payout:1", "--json"},
		"why_task_failed":         {"why", "payout:2"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			got := command(t, on(url), args...)
			wantResult(t, got, exitDone, "")
			golden(t, name, got.stdout)
		})
	}
}

func TestTasks_payloadOnlyWhenAsked(t *testing.T) {
	url := withTasks(t)
	for _, args := range [][]string{
		{"tasks", "list"}, {"tasks", "list", "--json"}, {"tasks", "show", "101"}, {"tasks", "show", "101", "--json"},
		{"why", "receipt:17"}, {"why", "receipt:17", "--json"}, {"why", "104"}, {"why", "104", "--json"},
	} {
		if got := command(t, on(url), args...); strings.Contains(got.stdout+got.stderr, `"order"`) || strings.Contains(got.stdout+got.stderr, `"month"`) {
			t.Errorf("%v showed the payload: %s", args, got.stdout)
		}
	}
}

func TestTasksList_pagesHoldEveryTaskOnce(t *testing.T) {
	url := withTasks(t)
	type page struct {
		Tasks []struct{ ID int64 }
		Next  int64
	}
	for _, limit := range []string{"1", "3", "8"} {
		var ids []int64
		for args := []string{"tasks", "list", "--json", "--limit", limit}; ; {
			var p page
			if err := json.Unmarshal([]byte(command(t, on(url), args...).stdout), &p); err != nil {
				t.Fatal(err)
			}
			for _, task := range p.Tasks {
				ids = append(ids, task.ID)
			}
			if p.Next == 0 {
				break
			}
			args = []string{"tasks", "list", "--json", "--limit", limit, "--before", fmt.Sprint(p.Next)}
		}
		if fmt.Sprint(ids) != "[108 107 106 105 104 103 102 101]" {
			t.Errorf("with --limit %s: got %v", limit, ids)
		}
	}
	wantResult(t, command(t, on(url), "tasks", "list", "--limit", "3"), exitDone, "idem: there may be more: --before 106")
	wantResult(t, command(t, on(url), "tasks", "list", "--kind", "nobody"), exitDone, "idem: no tasks")
}

// byHand is a whole command line that changes tasks.
func byHand(verb string, more ...string) []string {
	return append([]string{"tasks", verb, "--reason", "ticket 4711", "--actor", "carol@desk"}, more...)
}

func wantOutput(t *testing.T, got result, code int, stdout, stderr string) {
	t.Helper()
	wantResult(t, got, code, stderr)
	if got.stdout != stdout {
		t.Errorf("got %q, want %q", got.stdout, stdout)
	}
}

func TestT17_tasksRetryAndCancel(t *testing.T) {
	url := withTasks(t)
	wantOutput(t, command(t, on(url), byHand("retry", "payout:2")...), exitDone,
		"retried payout:2 of money (task 108): it is pending, with all its attempts\n", "")
	wantOutput(t, command(t, on(url), byHand("retry", "102")...), exitDone,
		"retried refund:17 of money (task 102): it is pending, with all its attempts\n",
		"idem: 1 effect of it is not settled; idem why 102 tells what to do")
	wantOutput(t, command(t, on(url), byHand("cancel", "receipt:17", "--yes")...), exitDone, "cancelled receipt:17 of default (task 101)\n", "")
	wantOutput(t, command(t, on(url), byHand("cancel", "104", "--yes")...), exitDone,
		"asked for the cancellation of report:1 of default (task 104); idem tasks show 104 tells what comes of it\n", "")
	var change changeJSON
	got := command(t, on(url), byHand("retry", "105", "--json")...)
	wantResult(t, got, exitDone, "")
	if err := json.Unmarshal([]byte(got.stdout), &change); err != nil || change.Action != "task_retry" || change.Scope != "default" || change.Key != "105" {
		t.Errorf("got %s (%v)", got.stdout, err)
	}
	if shown := command(t, on(url), "tasks", "show", "105").stdout; !strings.Contains(shown, "retried task 105 of default    by carol@desk:  ticket 4711\n") ||
		!strings.Contains(shown, "cancelled task 105 of default  by carol@desk:  wrong month\n") {
		t.Errorf("got %s, want who did what", shown)
	}
	if shown := command(t, on(url), "tasks", "show", "101").stdout; strings.Contains(shown, "the name of a task") {
		t.Errorf("got %s, want nothing of a key of the same name", shown)
	}
}

func TestT17_tasksRefusals(t *testing.T) {
	url := withTasks(t)
	before := command(t, on(url), "tasks", "list", "--json").stdout
	for _, tt := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{byHand("retry", "103"), exitRefused, "refused: the task is done since 2026-03-02T10:00:20Z; a second run would do it again"},
		{byHand("retry", "101"), exitRefused, "refused: the task is not finished: it is pending"},
		{byHand("retry", "104"), exitRefused, "refused: the task is not finished: it is running"},
		{byHand("cancel", "103", "--yes"), exitRefused, "refused: the task is finished: it is done"},
		{byHand("cancel", "107", "--yes"), exitRefused, "refused: an effect of the task is not settled; let the next attempt find out, or settle it: idem why tells which"},
		{byHand("retry", "nobody"), exitNotFound, "no queue has the task nobody: it was never enqueued, or its time is over and it was swept"},
		{byHand("retry", "102", "--queue", "default"), exitNotFound, "the queue default has no task 102: it was never enqueued, or its time is over and it was swept"},
		{[]string{"tasks", "show", "999"}, exitNotFound, "no queue has the task 999: it was never enqueued, or its time is over and it was swept"},
		{byHand("retry", "--kind", "payout"), exitUsage, "1 task matches; add --yes to retry what can be"},
		{byHand("cancel", "--all"), exitUsage, "4 tasks match; add --yes to cancel what can be"},
		{byHand("pause", "paused"), exitRefused, "refused: the queue paused is paused already"},
		{byHand("resume", "money"), exitRefused, "refused: the queue money is not paused"},
		{byHand("pause", "a\nb"), exitUsage, "byte 2 of QUEUE is not visible ASCII; write words and ids, such as receipt:17"},
	} {
		wantResult(t, command(t, on(url), tt.args...), tt.code, "idem: "+tt.stderr)
	}
	if after := command(t, on(url), "tasks", "list", "--json").stdout; after != before {
		t.Errorf("what was refused changed something: got\n%s\nwant\n%s", after, before)
	}
}

func TestTasks_severalQueuesHaveTheKey(t *testing.T) {
	url := withTasks(t)
	execute(t, url, "insert into idem.tasks (queue, kind, task_key, payload) values ('default', 'refund', 'refund:17', '1'), ('money', 'refund', '105', '1')")
	const several = "idem: several queues have the task refund:17; add --%s: default, money"
	wantResult(t, command(t, on(url), "tasks", "show", "refund:17"), exitUsage, fmt.Sprintf(several, "queue"))
	wantResult(t, command(t, on(url), "why", "refund:17"), exitUsage, fmt.Sprintf(several, "scope"))
	wantResult(t, command(t, on(url), "why", "refund:17", "--scope", "money"), exitDone, "")
	for queue, want := range map[string]string{"default": "report:2", "money": "105"} { // a number is an id first
		if got := command(t, on(url), "tasks", "show", "105", "--queue", queue); !strings.Contains(got.stdout, want) || got.code != exitDone {
			t.Errorf("105 of %s: got %+v", queue, got)
		}
	}
}

func TestTasks_allThatMatch(t *testing.T) {
	url := withTasks(t)
	execute(t, url, "insert into idem.tasks (kind, payload, status, attempts, takes, finished_at, expires_at, last_error) "+
		"select 'letter', '1', 'failed', 10, 10, now(), now() + interval '1 day', 'no paper' from generate_series(1, 1100)")
	got := command(t, on(url), byHand("retry", "--kind", "letter", "--yes")...)
	wantOutput(t, got, exitDone, "retried 1100 of 1100 tasks\n", "idem: 1100 tasks match\nidem: 500 of 1100\nidem: 1000 of 1100")
	wantOutput(t, command(t, on(url), byHand("retry", "--kind", "letter", "--yes", "--json")...), exitDone,
		"{\n  \"matched\": 0,\n  \"retried\": 0,\n  \"left\": 0\n}\n", "idem: no task matches")
	wantOutput(t, command(t, on(url), byHand("cancel", "--all", "--before", "2026-04-01T00:00:00Z", "--yes")...), exitDone,
		"cancelled 2 of 4 tasks, asked for the cancellation of 1 that are running; 1 left: an effect is not settled, or somebody else works on the task\n",
		"idem: 4 tasks match")
	wantOutput(t, command(t, on(url), byHand("cancel", "--queue", "default", "--status", "pending", "--yes", "--json")...), exitDone,
		"{\n  \"matched\": 1100,\n  \"cancelled\": 1100,\n  \"asked\": 0,\n  \"left\": 0\n}\n", "idem: 1100 tasks match\nidem: 500 of 1100\nidem: 1000 of 1100")
	wantOutput(t, command(t, on(url), byHand("retry", "--status", "cancelled", "--kind", "letter", "--cause", "nobody", "--yes")...), exitDone,
		"retried 0 of 0 tasks\n", "idem: no task matches")
}

func TestTasksEnqueue(t *testing.T) {
	url := pgtest.NewURL(t)
	path := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(path, []byte("{\n  \"order\": 17\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := func(more ...string) []string { return byHand("enqueue", append([]string{"receipt.send"}, more...)...) }
	wantOutput(t, command(t, on(url), line("--key", "receipt:17", "--payload", "@"+path, "--queue", "mail", "--delay", "1h")...), exitDone,
		"enqueued task 1 of mail, pending\n", "")
	wantOutput(t, command(t, on(url), line("--key", "receipt:17", "--payload", `{"order":17}`, "--queue", "mail")...), exitDone,
		"duplicate: receipt:17 of mail is task 1 already, pending; nothing was enqueued\n", "")
	wantOutput(t, command(t, on(url), line("--key", "receipt:17", "--payload", `{"order":18}`, "--queue", "mail")...), exitRefused, "",
		"idem: refused: --key receipt:17 of mail is task 1 already, of kind receipt.send (pending), with another kind or payload; use another --key for another task")
	emptyConfigDir(t)
	var stdout, stderr bytes.Buffer
	args := line("--unkeyed", "--payload", "@-", "--priority", "5", "--attempts", "3", "--json")
	code := run(t.Context(), args, strings.NewReader("[1]"), &stdout, &stderr, func(name string) string { return on(url)[name] })
	var told struct {
		Outcome, Queue, Status string
		ID                     int64
	}
	if err := json.Unmarshal(stdout.Bytes(), &told); err != nil || code != exitDone || told.Outcome != "new" || told.Queue != "default" || told.Status != "pending" {
		t.Errorf("got exit code %d, %s and %s (%v)", code, stdout.String(), stderr.String(), err)
	}
	var task taskStoryJSON
	shown := command(t, on(url), "tasks", "show", fmt.Sprint(told.ID), "--payload", "--json")
	if err := json.Unmarshal([]byte(shown.stdout), &task); err != nil || task.Key != nil || task.Priority != 5 || task.MaxAttempts != 3 ||
		strings.Join(strings.Fields(string(task.Payload)), "") != "[1]" || len(task.Audit) != 1 || task.Audit[0].Action != "task_enqueue" || task.Audit[0].Actor != "carol@desk" {
		t.Errorf("got %s (%v)", shown.stdout, err)
	}
	for _, tt := range []struct {
		args   []string
		stderr string
	}{
		{line("--unkeyed", "--payload", "1", "--delay", "-1s"), "--delay is -1s, it may be 0s to 87600h"},
		{line("--key", "a b", "--payload", "1"), "byte 2 of --key is not visible ASCII; write words and ids, such as receipt:17"},
		{line("--unkeyed", "--payload", "1", "--priority", "9"), "--priority is 9, it may be -5 to 5"},
	} {
		wantResult(t, command(t, on(url), tt.args...), exitUsage, "idem: "+tt.stderr)
	}
}

func TestTasksPauseAndResume(t *testing.T) {
	url := withTasks(t)
	wantOutput(t, command(t, on(url), byHand("pause", "money")...), exitDone,
		"paused the queue money: nothing is taken from it until idem tasks resume; what is running goes on\n", "")
	if got := command(t, on(url), "tasks", "list", "--key", "payout:1"); !strings.Contains(got.stdout, "pending, its queue is paused") {
		t.Errorf("got %s, want to be told", got.stdout)
	}
	wantOutput(t, command(t, on(url), byHand("resume", "money")...), exitDone, "resumed the queue money\n", "")
	got := command(t, on(url), byHand("resume", "paused", "--json")...)
	var change changeJSON
	if err := json.Unmarshal([]byte(got.stdout), &change); err != nil || change.Action != "queue_resume" || change.Scope != "paused" || change.Reason != "ticket 4711" {
		t.Errorf("got %s (%v)", got.stdout, err)
	}
}

// A queue may be paused ahead of its first task, or its name may be a slip: whoever wrote it
// is told what there is.
func TestTasksPause_tellsOfAQueueWithoutTasks(t *testing.T) {
	url := withTasks(t)
	const others = "no task of this queue is there, but of default, money, paused"
	wantResult(t, command(t, on(url), byHand("resume", "mony")...), exitRefused, "idem: refused: the queue mony is not paused; "+others)
	wantOutput(t, command(t, on(url), byHand("pause", "mony")...), exitDone,
		"paused the queue mony: nothing is taken from it until idem tasks resume; what is running goes on\n", "idem: look at the name mony: "+others)
	wantResult(t, command(t, on(url), byHand("pause", "mony")...), exitRefused, "idem: refused: the queue mony is paused already; "+others)
	wantOutput(t, command(t, on(url), byHand("resume", "mony")...), exitDone, "resumed the queue mony\n", "idem: look at the name mony: "+others)
	for name, want := range map[string]bool{"mony": false, "money": true} {
		got := command(t, on(url), byHand("pause", name, "--json")...)
		var line pauseJSON
		if err := json.Unmarshal([]byte(got.stdout), &line); err != nil || line.Action != "queue_pause" || line.Scope != name ||
			line.HasTasks != want || strings.Join(line.Queues, " ") != "default money paused" {
			t.Errorf("%s: got %s (%v)", name, got.stdout, err)
		}
	}
	empty := pgtest.NewURL(t)
	got := command(t, on(empty), byHand("pause", "mail", "--json")...)
	wantResult(t, got, exitDone, "idem: look at the name mail: no queue has a task")
	if !strings.Contains(got.stdout, "\"queue_has_tasks\": false,\n  \"queues_with_tasks\": []\n") {
		t.Errorf("got %s, want a list without names", got.stdout)
	}
}

func TestKeysRelease_notWithATask(t *testing.T) {
	url := withTasks(t)
	line := []string{"keys", "release", "refused", "--scope", "alice", "--reason", "r", "--yes"}
	wantResult(t, command(t, on(url), line...), exitRefused,
		"idem: refused: a task that the request of refused of alice has caused is done, or will run; idem why tells which")
	wantResult(t, command(t, on(url), byHand("cancel", "106", "--yes")...), exitDone, "")
	wantResult(t, command(t, on(url), line...), exitDone, "")
}

func TestCompletion_knowsTheStatusesOfTasks(t *testing.T) {
	for verb, want := range map[string]string{
		"list":   "pending\nrunning\ndone\nfailed\ncancelled\n",
		"retry":  "failed\ncancelled\n",
		"cancel": "pending\nrunning\n",
	} {
		if got := command(t, nil, "__complete", "tasks", verb, "--status", ""); got.code != exitDone || !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%s: got exit code %d and %q, want %q", verb, got.code, got.stdout, want)
		}
	}
}
