package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

var (
	// ErrNoTask reports that there is no such task: it was never enqueued, or its time is
	// over and it was swept.
	ErrNoTask = errors.New("admin: there is no such task")

	// ErrTaskKey reports what can not be the key of a task.
	ErrTaskKey = errors.New("admin: invalid task key")
)

// TaskFilter chooses tasks. Its zero value is the newest DefaultLimit of all.
type TaskFilter struct {
	// Queue, Kind and Key are those of the tasks; empty means any.
	Queue, Kind, Key string
	// Status is one of TaskStatuses; empty means any. Where tasks are changed it means any
	// that can be.
	Status queue.Status
	// Cause is what the tasks were enqueued by; an empty part of it means any.
	Cause Intent
	// CreatedBefore leaves tasks out that were enqueued later, or then; zero leaves none
	// out.
	CreatedBefore time.Time
	// Before is where a list begins: only tasks with a smaller id, 0 is at the newest.
	// The id of the last task of one page gives the next page.
	Before int64
	// Limit is how many tasks a list holds at most. Zero means DefaultLimit; the maximum is
	// MaxLimit.
	Limit int
}

func (f TaskFilter) check() error {
	errs := []error{validLimit(f.Limit), validPart("queue", f.Queue, queue.MaxName), validPart("kind", f.Kind, queue.MaxName)}
	if f.Key != "" {
		errs = append(errs, ValidTaskKey(f.Key))
	}
	if f.Status != "" && !slices.Contains(TaskStatuses(), f.Status) {
		errs = append(errs, fmt.Errorf("%w: no status %q, there are %q", ErrFilter, f.Status, TaskStatuses()))
	}
	return errors.Join(errs...)
}

// validPart checks a name that may be empty for any.
func validPart(what, name string, most int) error {
	if name == "" {
		return nil
	}
	if err := visible(name, most); err != nil {
		return fmt.Errorf("%w: the %s: %w", ErrFilter, what, err)
	}
	return nil
}

// visible reports a name that is not 1 to most bytes of visible ASCII.
func visible(name string, most int) error {
	if name == "" || len(name) > most {
		return fmt.Errorf("it has %d bytes, 1 to %d are allowed", len(name), most)
	}
	for i := range len(name) {
		if name[i] < 0x21 || name[i] > 0x7e {
			return fmt.Errorf("byte %d is not visible ASCII", i+1)
		}
	}
	return nil
}

// ValidTaskKey reports whether key can be the key of a task: 1 to queue.MaxKey bytes of
// visible ASCII. The error wraps ErrTaskKey.
func ValidTaskKey(key string) error {
	if err := visible(key, queue.MaxKey); err != nil {
		return fmt.Errorf("%w: %w", ErrTaskKey, err)
	}
	return nil
}

// parameters are f as tasks_list, tasks_count and tasks_choose take it, with the statuses
// that count if f says none; none for any.
func (f TaskFilter) parameters(otherwise ...queue.Status) []any {
	statuses := otherwise
	if f.Status != "" {
		statuses = []queue.Status{f.Status}
	}
	var created *time.Time
	if !f.CreatedBefore.IsZero() {
		created = &f.CreatedBefore
	}
	return []any{optional(f.Queue), optional(f.Kind), statuses, optional(f.Key),
		optional(f.Cause.Door), optional(f.Cause.Scope), optional(f.Cause.Key), created}
}

// ListTasks returns the tasks that filter chooses, newest first, without payloads. It
// reads the table from its newest row on, until there are enough. Errors: ErrFilter,
// ErrTaskKey, idem.ErrUnavailable.
func ListTasks(ctx context.Context, db *idem.DB, filter TaskFilter) ([]Task, error) {
	if err := filter.check(); err != nil {
		return nil, err
	}
	var before *int64
	if filter.Before != 0 {
		before = &filter.Before
	}
	rows, err := db.Pool().Query(ctx, admin.TasksList, append(filter.parameters(), before, cmp.Or(filter.Limit, DefaultLimit))...)
	if err != nil {
		return nil, failure(ctx, "list tasks", err)
	}
	tasks, err := pgx.CollectRows(rows, scanTask)
	return tasks, failure(ctx, "list tasks", err)
}

// FindTasks returns the tasks of one key in every queue, and the task whose id the text
// is, without payloads, at most MaxLimit of them, in the order of queues. It reads the
// whole index of keys. None is no error. Errors: ErrTaskKey, idem.ErrUnavailable.
func FindTasks(ctx context.Context, db *idem.DB, keyOrID string) ([]Task, error) {
	if err := ValidTaskKey(keyOrID); err != nil {
		return nil, err
	}
	var id *int64
	if n, err := strconv.ParseInt(keyOrID, 10, 64); err == nil && n > 0 {
		id = &n
	}
	tasks, err := findTasks(ctx, db.Pool(), &keyOrID, id)
	return tasks, failure(ctx, "find a task", err)
}

func findTasks(ctx context.Context, q rowsQuerier, key *string, id *int64) ([]Task, error) {
	rows, err := q.Query(ctx, admin.TasksFind, key, id, MaxLimit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanTask)
}

// tasksCaused are the tasks that an intent has caused, and those that they have, oldest
// first.
func tasksCaused(ctx context.Context, q rowsQuerier, by Intent) ([]Task, error) {
	rows, err := q.Query(ctx, admin.TasksCaused, by.Door, by.Scope, by.Key, MaxLimit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanTask)
}

// effectsOfTasks are the effects that tasks have caused or called last.
func effectsOfTasks(ctx context.Context, q rowsQuerier, tasks []Task) ([]Effect, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	queues, ids := taskNames(tasks)
	rows, err := q.Query(ctx, admin.TasksEffects, queues, ids, MaxLimit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEffect)
}

// taskNames are queues and ids, as effects and the audit name tasks.
func taskNames(tasks []Task) (queues, ids []string) {
	for _, t := range tasks {
		i := t.Intent()
		queues, ids = append(queues, i.Scope), append(ids, i.Key)
	}
	return queues, ids
}
