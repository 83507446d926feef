package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// A task is enqueued in the transaction of its request: where there is one, the request was
// carried out, though nothing else is remembered of it and the task itself came to nothing.
func TestWhy_aTaskOutlivesItsRequestsKey(t *testing.T) {
	url := pgtest.NewURL(t)
	for i, status := range []string{"failed", "cancelled", "done"} {
		execute(t, url, fmt.Sprintf(`insert into idem.tasks (id, queue, kind, task_key, payload, status, attempts, takes, max_attempts, last_error, errors,
				finished_at, expires_at, cause_door, cause_scope, cause_key)
			values (%d, 'default', 'receipt.send', 'receipt:%[1]d', '{}', '%[2]s', 1, 1, 1, case when '%[2]s' = 'failed' then 'no printer' end,
				case when '%[2]s' = 'failed' then '[{"attempt": 1, "at": "2026-03-06T10:01:00+00:00", "error": "no printer"}]'::jsonb else '[]' end,
				now(), '2999-01-01', 'request', 'alice', 'order-%[2]s')`, i+1, status))
		for _, about := range []string{"order-" + status, fmt.Sprint(i + 1), fmt.Sprintf("receipt:%d", i+1)} {
			got := command(t, on(url), "why", about)
			wantResult(t, got, exitDone, "")
			for _, wrong := range []string{"Yes.", "No need"} {
				if strings.Contains(got.stdout, wrong) {
					t.Errorf("why %s says %q:\n%s", about, wrong, got.stdout)
				}
			}
			retry := fmt.Sprintf("idem tasks retry %d --reason TEXT", i+1)
			if !strings.Contains(got.stdout, "everything else would be done a second time") || strings.Contains(got.stdout, retry) != (status == "failed") {
				t.Errorf("why %s says\n%s", about, got.stdout)
			}
		}
	}
}
