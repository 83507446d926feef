package idem_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/check"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// noConstraints lets rows in that the schema refuses.
const noConstraints = `alter table idem.idempotency_keys drop constraint state_columns;
	alter table idem.applied_effects drop constraint status_columns;
	alter table idem.audit drop constraint audit_words;
	alter table idem.tasks drop constraint status_columns;
	alter domain idem.queue_name drop constraint queue_name;
	alter domain idem.kind_name drop constraint kind_name;
	alter domain idem.task_key drop constraint task_key_name;
	alter domain idem.task_payload drop constraint payload_size;
	alter domain idem.task_priority drop constraint priority_range;
	alter domain idem.task_max_attempts drop constraint max_attempts_range;
	alter domain idem.task_retention drop constraint retention_range;
	alter domain idem.task_attempts drop constraint attempts_range;
	alter domain idem.task_takes drop constraint takes_range;
	alter domain idem.task_errors drop constraint errors_array;
	alter domain idem.task_run_at drop constraint run_at_range`

const answered = `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint,
	response_status, response_headers, response_body, created_at, expires_at) values `

const claimed = `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint,
	lease_until, bound, expires_at) values `

const called = `insert into idem.applied_effects (scope, effect_key, status, result, fence, downstream_key, calls,
	intended_at, call_until, owner_door, owner_scope, owner_key) values `

const enqueued = `insert into idem.tasks (queue, kind, task_key, payload) values `

// taken is a task that a worker has, on a lease, and its take.
const taken = `insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
	values ('00000000-0000-0000-0000-00000000000f', gen_random_uuid(), 'q', now(), now() + interval '30s', 1, '{1}');
	insert into idem.tasks (id, queue, kind, payload, status, fence, lease_until, takes)
	values (1, 'q', 'k', '', 'running', '00000000-0000-0000-0000-00000000000f', now() + interval '30s', 1);`

// planted is one broken row for each invariant, by the invariant's name.
var planted = map[string]string{
	"key_state_allowed": answered + `('s', 'no-status', gen_random_uuid(), 'answered', 1, sha256('x'), null, '{}', '', now(), now() + interval '1h')`,
	"key_fingerprint":   answered + `('s', 'no-print', gen_random_uuid(), 'answered', 1, '\x00', 201, '{}', '', now(), now() + interval '1h')`,
	"key_name":          answered + `('s', 'a space', gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', '', now(), now() + interval '1h')`,
	"key_lifetime":      answered + `('s', 'backwards', gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', '', now(), now() - interval '1h')`,
	"key_headers":       answered + `('s', 'cookie', gen_random_uuid(), 'answered', 1, sha256('x'), 201, array['Set-Cookie', 'a=b']::bytea[], '', now(), now() + interval '1h')`,
	"key_committed": `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, expires_at, committed)
		values ('s', 'knows', gen_random_uuid(), 'unknown', 1, sha256('x'), 'infinity', true)`,
	"audit_words": `insert into idem.audit (actor, action, scope, key, reason) values ('me', 'key_release', 's', 'k', '')`,
	"key_index":   `alter table idem.idempotency_keys drop constraint idempotency_keys_pkey`,
	"key_unique": `alter table idem.idempotency_keys drop constraint idempotency_keys_pkey; ` +
		answered + `('s', 'twice', gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', '', now(), now() + interval '1h'),
		('s', 'twice', gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', '', now(), now() + interval '1h')`,
	"key_lease":             claimed + `('s', 'leased', gen_random_uuid(), 'claimed', 1, sha256('x'), now() + interval '16 min', true, now() + interval '1h')`,
	"effect_status_allowed": `insert into idem.applied_effects (scope, effect_key, status) values ('s', 'no-result', 'applied')`,
	"effect_name":           `insert into idem.applied_effects (scope, effect_key, status) values ('s', repeat('k', 513), 'absent')`,
	"effect_owner":          called + `('s', 'nobodys', 'started', null, gen_random_uuid(), 'd', 1, now(), now(), 'request', 's', 'swept')`,
	"effect_cause":          called + `('s', 'half', 'absent', null, gen_random_uuid(), 'd', 1, now(), now(), 'request', 's', null)`,
	"effect_index":          `alter table idem.applied_effects drop constraint applied_effects_pkey`,
	"effect_unique": `alter table idem.applied_effects drop constraint applied_effects_pkey;
		insert into idem.applied_effects (scope, effect_key, status) values ('s', 'twice', 'absent'), ('s', 'twice', 'absent')`,
	"instance":            `delete from idem.instance`,
	"task_status_allowed": enqueued + `('q', 'k', null, ''); update idem.tasks set fence = gen_random_uuid()`,
	"task_name":           enqueued + `('a queue', 'k', null, '')`,
	"task_limits":         enqueued + `('q', 'k', null, ''); update idem.tasks set priority = 6`,
	"task_index":          `alter table idem.tasks drop constraint tasks_key`,
	"task_unique":         `alter table idem.tasks drop constraint tasks_key; ` + enqueued + `('q', 'k', 'twice', ''), ('q', 'k', 'twice', '')`,
	"task_taken":          taken + `delete from idem.takes`,
	"task_lease":          taken + `update idem.tasks set lease_until = now() - interval '61 min'`,
	"task_attempts":       taken + `update idem.tasks set attempts = 2`,
	"task_cause":          enqueued + `('q', 'k', null, ''); update idem.tasks set cause_door = 'request', cause_scope = 's'`,
	"take_allowed":        taken + `update idem.takes set started = 2`,
}

func TestCheck_namesEachPlantedViolation(t *testing.T) {
	entries, err := check.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(planted) {
		t.Errorf("there are %d invariants and %d planted rows: each needs one", len(entries), len(planted))
	}
	for name, sql := range planted {
		t.Run(name, func(t *testing.T) {
			pool := pgtest.Broken(t)
			exec(t, pool, noConstraints)
			for one := range strings.SplitSeq(sql, ";") {
				exec(t, pool, one)
			}
			if got := broken(t, open(t, pool, idem.Config{})); !slices.Contains(got, name) {
				t.Errorf("Check named %v, want %s among them", got, name)
			}
		})
	}
}

// The ends of the task that is taken.
const (
	done   = `update idem.tasks set status = 'done', lease_until = null, finished_at = now(), expires_at = now(), attempts = 1;`
	failed = `update idem.tasks set status = 'failed', lease_until = null, finished_at = now(), expires_at = now(), attempts = 1, last_error = 'e';`
)

// What the protocol of a lease leaves behind breaks no invariant: a claim that lives,
// one that was abandoned, one that another has taken over before it has repeated the
// call, and an effect left unknown. What it can not leave behind does.
func TestCheck_knowsWhatALeaseMayLeaveBehind(t *testing.T) {
	const fence, other = "'00000000-0000-0000-0000-00000000000f'", "'00000000-0000-0000-0000-00000000000e'"
	key := func(fence, lease string) string {
		return claimed + "('s', 'k', " + fence + ", 'claimed', 1, sha256('x'), now() + interval '" + lease + "', true, now() + interval '1h');"
	}
	effect := func(status string) string {
		return called + "('shop', 'e', '" + status + "', null, " + fence + ", 'd', 1, now(), now() + interval '10s', 'request', 's', 'k');"
	}
	ofTask := func(status string) string {
		return called + "('shop', 'e', '" + status + "', null, " + fence + ", 'd', 1, now(), now(), 'task', 'q', '1');"
	}
	over := answered + `('s', 'k', ` + fence + `, 'answered', 1, sha256('x'), 201, '{}', '', now(), now() + interval '1h');`
	for name, tt := range map[string]struct {
		sql  string
		want []string
	}{
		"live":                       {key(fence, "30s") + effect("started"), nil},
		"abandoned":                  {key(fence, "-1h") + effect("started"), nil},
		"taken over":                 {key(other, "30s") + effect("started"), nil},
		"unknown":                    {key(fence, "-1h") + effect("unknown"), nil},
		"unknown, its key is over":   {effect("unknown"), nil},
		"started, its key is over":   {effect("started"), []string{"effect_owner"}},
		"answered over a started":    {over + effect("started"), []string{"effect_owner"}},
		"answered over an unknown":   {over + effect("unknown"), []string{"effect_owner"}},
		"answered by another":        {strings.Replace(over, fence, other, 1) + effect("started"), nil},
		"absent, its key is over":    {effect("absent"), nil},
		"a lease on an answered key": {over + "update idem.idempotency_keys set lease_until = now()", []string{"key_lease", "key_state_allowed"}},
		"a lease beyond the memory": {key(fence, "30s") + "update idem.idempotency_keys set created_at = now() - interval '1h', expires_at = now()",
			[]string{"key_lease"}},
		"a task's effect":         {taken + ofTask("started"), nil},
		"of a task taken again":   {taken + "update idem.tasks set fence = " + other + "; update idem.takes set fence = " + other + ";" + ofTask("started"), nil},
		"of a dead letter":        {taken + failed + ofTask("started"), nil},
		"of a task that is done":  {taken + done + ofTask("unknown"), []string{"effect_owner"}},
		"applied, its task is":    {taken + done + strings.Replace(ofTask("applied"), "'applied', null", "'applied', '1'", 1), nil},
		"of no task":              {ofTask("started"), []string{"effect_owner"}},
		"unknown, of no task":     {ofTask("unknown"), nil},
		"of another queue's task": {taken + strings.Replace(ofTask("started"), "'q'", "'p'", 1), []string{"effect_owner"}},
		"of a task without an id": {strings.Replace(ofTask("absent"), "'1'", "'one'", 1), []string{"effect_cause"}},
		"started by nobody":       {called + "('shop', 'e', 'started', null, " + fence + ", 'd', 1, now(), now(), null, null, null)", []string{"effect_owner"}},
		"owned by something else": {called + "('shop', 'e', 'absent', null, " + fence + ", 'd', 1, now(), now(), 'cron', 'q', '1')", []string{"effect_cause"}},
		"half a cause":            {effect("absent") + "update idem.applied_effects set cause_door = 'request', cause_key = 'k'", []string{"effect_cause"}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := pgtest.Broken(t)
			exec(t, pool, noConstraints)
			for sql := range strings.SplitSeq(strings.TrimSuffix(tt.sql, ";"), ";") {
				exec(t, pool, sql)
			}
			if got := broken(t, open(t, pool, idem.Config{})); !slices.Equal(got, tt.want) {
				t.Errorf("Check named %v, want %v", got, tt.want)
			}
		})
	}
}

// What workers leave behind, alive or dead, breaks no invariant; what would keep a task
// from ever being taken again does.
func TestCheck_knowsWhatAWorkerMayLeaveBehind(t *testing.T) {
	pool := pgtest.Broken(t)
	exec(t, pool, noConstraints)
	db := open(t, pool, idem.Config{})
	for name, tt := range map[string]struct {
		sql  string
		want []string
	}{
		"pending":                       {enqueued + "('q', 'k', 'a', ''), ('q', 'k', null, ''), ('q', 'k', null, ''), ('p', 'k', 'a', '')", nil},
		"running":                       {taken, nil},
		"dead, and not found yet":       {taken + "update idem.tasks set lease_until = now() - interval '59 min'; update idem.takes set lease_until = now() - interval '59 min'", nil},
		"done, its take not ended":      {taken + done, nil},
		"failed":                        {taken + failed, nil},
		"forgotten, its take not ended": {taken + "delete from idem.tasks", nil},
		"to be cancelled":               {taken + "update idem.tasks set cancel_at = now()", nil},
		"a limit lowered by hand":       {taken + "update idem.tasks set attempts = 4, takes = 9, max_attempts = 3", nil},
		"caused by a task":              {taken + "update idem.tasks set cause_door = 'task', cause_scope = 'q', cause_key = '17'", nil},
		"running, its take gone":        {taken + "delete from idem.takes", []string{"task_taken"}},
		"running, not in its take":      {taken + "update idem.takes set tasks = '{2}'", []string{"task_taken"}},
		"running, in another queue":     {taken + "update idem.takes set queue = 'p'", []string{"task_taken"}},
		"a lease that never ends":       {taken + "update idem.tasks set lease_until = 'infinity'", []string{"task_lease"}},
		"a take that never ends":        {taken + "update idem.takes set lease_until = 'infinity'", []string{"take_allowed"}},
		"a take of nothing":             {taken + done + "update idem.takes set tasks = '{}', started = 0", []string{"take_allowed"}},
		"a take of one task twice":      {taken + "update idem.takes set tasks = '{1,1}'", []string{"take_allowed"}},
		"running without a lease":       {taken + "update idem.tasks set lease_until = null", []string{"task_status_allowed"}},
		"a dead letter without a word":  {taken + failed + "update idem.tasks set last_error = null", []string{"task_status_allowed"}},
		"in no known state":             {enqueued + "('q', 'k', 'a', ''); update idem.tasks set status = 'retrying'", []string{"task_status_allowed"}},
		"an id as cause that is none":   {taken + "update idem.tasks set cause_door = 'task', cause_scope = 'q', cause_key = 'x'", []string{"task_cause"}},
		"a kind of two lines":           {enqueued + "('q', e'k\nl', 'a', '')", []string{"task_name"}},
		"a key of no bytes":             {enqueued + "('q', 'k', '', '')", []string{"task_name"}},
		"due after the calendar":        {enqueued + "('q', 'k', 'a', ''); update idem.tasks set run_at = 'infinity'", []string{"task_limits"}},
		"no attempts allowed":           {enqueued + "('q', 'k', 'a', ''); update idem.tasks set max_attempts = 0", []string{"task_limits"}},
		"no room to count attempts":     {taken + "update idem.tasks set attempts = 2147483647, takes = 2147483647", []string{"task_limits"}},
		"no room to count takes":        {taken + "update idem.tasks set takes = 1000000001", []string{"task_limits"}},
		"errors that are no array":      {taken + "update idem.tasks set errors = '{}'", []string{"task_limits"}},
		"too large":                     {enqueued + "('q', 'k', 'a', convert_to(repeat('x', 1048577), 'UTF8'))", []string{"task_limits"}},
	} {
		t.Run(name, func(t *testing.T) {
			exec(t, pool, "truncate idem.tasks, idem.takes")
			for sql := range strings.SplitSeq(strings.TrimSuffix(tt.sql, ";"), ";") {
				exec(t, pool, sql)
			}
			if got := broken(t, db); !slices.Equal(got, tt.want) {
				t.Errorf("Check named %v, want %v", got, tt.want)
			}
		})
	}
	exec(t, pool, "truncate idem.tasks, idem.takes")
	exec(t, pool, "alter table idem.tasks drop constraint tasks_pkey, drop constraint tasks_key")
	if got := broken(t, db); !slices.Equal(got, []string{"task_index", "task_index"}) {
		t.Errorf("without both indexes Check named %v, want task_index for each", got)
	}
}

func broken(t testing.TB, db *idem.DB) (names []string) {
	t.Helper()
	for v, err := range idem.Check(t.Context(), db) {
		if err != nil {
			t.Fatal(err)
		}
		if v.Table == "" || v.Detail == "" {
			t.Errorf("a violation without words: %+v", v)
		}
		names = append(names, v.Invariant)
	}
	return names
}

func TestCheck_runsTheProgramsOwn(t *testing.T) {
	own := func(ctx context.Context, tx pgx.Tx) ([]idem.Violation, error) {
		var level, readOnly string
		if err := tx.QueryRow(ctx, "select current_setting('transaction_isolation'), current_setting('transaction_read_only')").Scan(&level, &readOnly); err != nil {
			return nil, err
		}
		return []idem.Violation{{Invariant: "mine", Table: "t", Row: level + " " + readOnly, Detail: "for the test"}}, nil
	}
	db := open(t, pgtest.New(t), idem.Config{Checks: []idem.CheckFunc{own}})
	var got []idem.Violation
	for v, err := range idem.Check(t.Context(), db) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	if len(got) != 1 || got[0].Row != "repeatable read on" {
		t.Errorf("got %+v, want the program's own violation, read in one read-only snapshot", got)
	}
}

func TestCheck_anEarlyBreakLeavesNoTransaction(t *testing.T) {
	pool := pgtest.Broken(t)
	exec(t, pool, noConstraints)
	exec(t, pool, planted["key_name"])
	for range idem.Check(t.Context(), open(t, pool, idem.Config{})) {
		break
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are still held", n)
	}
}
