package admin_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
)

// An operator with the grants of docs/operations.md, and nothing else, can tell
// why and release, and cannot rewrite the audit.
func TestReleaseKey_worksForAnOperatorThatOwnsNothing(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "-- operator\n")
	grants, _, found := strings.Cut(section, "\n\n")
	if !found {
		t.Fatal("docs/operations.md has no grants for an operator")
	}
	db := open(t)
	for _, sql := range []string{"create role idem_operator login password 'operator'", grants} {
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	owner := db.Pool()
	t.Cleanup(func() {
		pool := pgtest.PoolWith(t, owner.Config())
		if _, err := pool.Exec(context.Background(), "drop owned by idem_operator; drop role idem_operator"); err != nil {
			t.Error(err)
		}
	})
	g := newGuarded(t, db, idemhttp.Route{}, answering(t, owner, http.StatusConflict, false, "taken"))
	g.post(t.Context(), "one", "x")
	config := owner.Config()
	config.ConnConfig.User, config.ConnConfig.Password = "idem_operator", "operator"
	operator, err := idem.Open(t.Context(), pgtest.PoolWith(t, config), idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	wantRelease(t, operator, release("one"), nil)
	if s, err := admin.Why(t.Context(), operator, "a", "one"); err != nil || len(s.Audit) != 1 {
		t.Errorf("got %+v and error %v, want the release", s, err)
	}
	operateTasks(t, operator)
	for _, sql := range []string{"update idem.audit set actor = 'nobody'", "delete from idem.audit"} {
		if _, err := operator.Pool().Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: an operator may rewrite the audit", sql)
		}
	}
	if _, err := idem.Sweep(t.Context(), operator); err != nil {
		t.Errorf("Sweep: %v", err)
	}
	for v, err := range idem.Check(t.Context(), operator) {
		t.Errorf("Check: %v %v", v, err)
	}
}

// operateTasks does with a task whatever an operator may.
func operateTasks(t *testing.T, db *idem.DB) {
	t.Helper()
	told, err := admin.EnqueueTask(t.Context(), db, admin.NewTask{Kind: "k", Key: "t", Payload: []byte("1")}, carol)
	if err != nil {
		t.Fatal(err)
	}
	again, err := admin.EnqueueTask(t.Context(), db, admin.NewTask{Kind: "k", Key: "t", Payload: []byte("1")}, carol)
	if err != nil || again.Outcome != queue.Duplicate {
		t.Errorf("enqueued again: got %+v and error %v", again, err)
	}
	for doing, do := range map[string]func() error{
		"pause": func() error {
			_, err := admin.PauseQueue(t.Context(), db, "default", carol)
			_, resumeErr := admin.ResumeQueue(t.Context(), db, "default", carol)
			return errors.Join(err, resumeErr)
		},
		"cancel and retry": func() error {
			_, _, err := admin.CancelTask(t.Context(), db, told.ID, carol)
			_, retryErr := admin.RetryTask(t.Context(), db, told.ID, carol)
			return errors.Join(err, retryErr)
		},
		"queues": func() error { _, _, err := admin.QueuesWithTasks(t.Context(), db, "default"); return err },
		"list":   func() error { _, err := admin.ListTasks(t.Context(), db, admin.TaskFilter{}); return err },
		"show":   func() error { _, err := admin.ShowTask(t.Context(), db, told.ID); return err },
		"root":   func() error { _, err := admin.TaskRoot(t.Context(), db, told.ID); return err },
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", doing, err)
		}
	}
}
