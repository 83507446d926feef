package pgsql_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgsql"
)

// unscoped are the statements and directories that may lack the scope, and why.
var unscoped = map[string]string{
	"keys/key_claim.sql":      "reads no table; its one lock is a digest of scope and key",
	"keys/key_rival.sql":      "reads no table; its two locks are digests of scope, key and fingerprint",
	"keys/key_watch.sql":      "joins rows by scope and key, and tells of each only that it is worth claiming",
	"keys/key_entomb.sql":     "the sweeper's: by time, over all scopes",
	"keys/key_sweep.sql":      "the sweeper's: by time, over all scopes",
	"effects/instance.sql":    "reads the id of the database, which has no scope",
	"tasks/listen.sql":        "reads no table; what is told names the queue",
	"tasks/listen_cancel.sql": "reads no table; what is told is that something was asked for",
	"tasks/wake.sql":          "reads no table; it tells the name of the queue",
	"tasks/task_begin.sql":    "reads no table; limits of a transaction and its mark",
	"tasks/task_sweep.sql":    "the sweeper's: by time, over all queues",
	"tasks/take_sweep.sql":    "the sweeper's: by time, over all queues",
	"check":                   "invariants of whole tables, run by an operator",
	"migrations":              "the schema",
	"tx":                      "limits of a transaction; they read no table",
	"admin":                   "an operator's, who sees every scope",
	"metrics":                 "an operator's numbers, over all scopes; no key and no scope is in them",
}

// mention is a table of Idem's in a statement, with its alias. A name within quotes is
// none: a setting's, or the sequence's.
var mention = regexp.MustCompile(`[^'\w]idem\.\w+(?:\s+as\s+(\w+))?`)

// scoped are the ways in which a statement names the scope of one mention of a
// table, right behind it, and why each will do. ALIAS is the table's.
var scoped = []struct{ pattern, why string }{
	{`\bwhere\s+ALIASscope = \$\d+ and ALIAS(effect_)?key = \$\d+\b`, "the rows that it reads or changes have it"},
	{`^\s*\(scope, (effect_)?key, [^()]*\)\s+(select|values \()\s*\$1, \$2, `, "the row that it inserts has it"},
	{`\bwhere\s+ALIASowner_scope = \$1 and ALIASowner_key = \$2\b`, "effects that its own key has called, of which it learns whether one is unsettled"},
	{`\bwhere\s+ALIASscope = (owner|free|held)\.scope and ALIASkey = (owner|free|held)\.key\b`,
		"the row that another part of it has found, which is looked at as well"},
	{`\bwhere\s+ALIASscope = e\.owner_scope and ALIASkey = e\.owner_key\s+and\s+ALIASfence = e\.fence\b`,
		"the claim that has called the effect, of which it learns whether it lives"},
	{`\bALIASscope = m\.scope and ALIASkey = m\.key\s+(where|and)\s+ALIASfence = m\.fence\b`,
		"the claims of its own process, by scope, key and fence"},

	{`\bwhere\s+ALIASqueue = \$1\b`, "the rows of one queue"},
	{`^\s*\(queue, [^()]*\)\s+(select|values \()\s*\$1, `, "the rows that it inserts have the queue"},
	{`\bwhere\s+ALIASowner_door = 'task' and ALIASowner_scope = \$1 and ALIASowner_key = (\w\.)?id::text\b`,
		"effects that a task of its own queue has called, of which it learns whether one is unsettled"},
	{`\bALIASqueue = m\.queue is true and ALIASid = m\.id\s+where\s+ALIASfence = m\.fence\b`,
		"the tasks of its own process, by queue, id and fence"},
	{`\bALIASqueue = m\.queue is true and ALIASid = m\.id and ALIASfence = m\.fence\b`, "the same"},
	{`\bwhere\s+ALIASqueue = m\.queue and ALIASfence = m\.fence\b`, "the takes of its own process, by queue and fence"},
	{`\bwhere\s+ALIASqueue = held\.queue is true and ALIASid = held\.id and ALIASfence = held\.fence\b`,
		"the task that another part of it has found, which is looked at as well"},
	{`\bwhere\s+ALIASqueue = \$\d+ and ALIASid = case \$\d+::text when 'task' then \(\$\d+::text\)::bigint end\s+and\s+ALIASfence = \$\d+\b`,
		"the task that calls the effect, by queue, id and fence"},
	{`\bwhere\s+ALIASqueue = e\.owner_scope and ALIASid = case e\.owner_door when 'task' then e\.owner_key::bigint end\s+and\s+ALIASfence = e\.fence\b`,
		"the task that has called the effect, of which it learns whether it lives"},
}

// isScoped reports whether a statement names the scope of every mention of a table: of
// a task or a take, the queue.
func isScoped(statement string) bool {
	mentions := mention.FindAllStringSubmatchIndex(statement, -1)
	for i, m := range mentions {
		behind, alias := statement[m[1]:], ""
		if i+1 < len(mentions) {
			behind = statement[m[1]:mentions[i+1][0]]
		}
		if m[2] >= 0 {
			alias = statement[m[2]:m[3]] + `\.`
		}
		if !slices.ContainsFunc(scoped, func(way struct{ pattern, why string }) bool {
			return regexp.MustCompile(strings.ReplaceAll(way.pattern, "ALIAS", alias)).MatchString(behind)
		}) {
			return false
		}
	}
	return len(mentions) > 0
}

func TestS6_noStatementOfADoorLacksTheScope(t *testing.T) {
	used, checked := map[string]bool{}, map[string]int{}
	files := os.DirFS(".")
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".sql" {
			return err
		}
		for _, exception := range []string{name, path.Dir(name)} {
			if unscoped[exception] != "" {
				used[exception] = true
				return nil
			}
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		checked[path.Dir(name)]++
		statement := pgsql.Statement(string(content))
		if !isScoped(statement) || strings.Count(statement, ";") > 0 {
			t.Errorf("%s is run for a request, a task or an effect and lacks the scope:\n%s", name, statement)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked["keys"] < 17 || checked["effects"] < 12 || checked["tasks"] < 20 {
		t.Errorf("%v statements were looked at, want those of keys, effects and tasks", checked)
	}
	for exception, reason := range unscoped {
		if !used[exception] {
			t.Errorf("%s is an exception (%s) that is not there", exception, reason)
		}
	}
}

// A part of a statement that names no scope is found, whatever the others name.
func TestS6_everyMentionOfATableIsLookedAt(t *testing.T) {
	const mine = "select from idem.idempotency_keys where scope = $1 and key = $2"
	for statement, want := range map[string]bool{
		mine: true,
		"select from idem.idempotency_keys as k where k.scope = $3 and k.key = $4":                                true,
		"select from idem.applied_effects as e where e.scope = $1 and e.effect_key = $2":                          true,
		"select from idem.applied_effects as e where e.effect_key = $2":                                           false,
		"select from idem.applied_effects as e where e.downstream_key = $2 and e.scope = $1":                      false,
		"select from idem.idempotency_keys as k where e.scope = $1 and e.key = $2":                                false,
		"select from idem.idempotency_keys where key = $1":                                                        false,
		"delete from idem.idempotency_keys where key = $1 and exists (" + mine + ")":                              false,
		"with mine as (" + mine + ") update idem.applied_effects set status = 'x' where effect_key = $2":          false,
		"insert into idem.applied_effects (effect_key, scope, status) select $1, $2, 'applied'":                   false,
		"select from m join idem.idempotency_keys as k on k.scope = m.scope and k.key = m.key":                    false,
		"select from idem.idempotency_keys as k where k.scope = e.owner_scope and k.key = e.owner_key":            false,
		"select from idem.tasks where queue = $1 and id = $2":                                                     true,
		"select from idem.tasks where id = $1":                                                                    false,
		"select from idem.tasks as c where d.queue = $1":                                                          false,
		"select from idem.tasks as c where c.kind = $1 and c.queue = $2":                                          false,
		"select from m join idem.tasks as c on c.queue = m.queue is true and c.id = m.id where c.fence = m.fence": true,
		"select from m join idem.tasks as c on c.id = m.id where c.fence = m.fence":                               false,
		"select from m join idem.tasks as c on c.queue = m.queue and c.id = m.id where c.status = 'running'":      false,
		"delete from idem.takes as k where k.fence = $1":                                                          false,
		"insert into idem.tasks (kind, queue) select $1, $2":                                                      false,
		"insert into idem.queues (queue, paused_at) values ($1, now()) on conflict (queue) do update set a=1":     true,
		"select 1": false,
	} {
		if got := isScoped(statement); got != want {
			t.Errorf("%s: scoped is %v, want %v", statement, got, want)
		}
	}
}

// What has no scope because it reads no table reads none.
func TestS6_statementsWithoutATableHaveNone(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "tx/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of tx: %v, %v", files, err)
	}
	for name, reason := range unscoped {
		if strings.HasPrefix(reason, "reads no table") && name != "keys/key_rival.sql" { // which asks pg_locks
			files = append(files, name)
		}
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		statement := pgsql.Statement(string(content))
		if regexp.MustCompile(`\b(from|into|update|table)\b|[^'\w]idem\.`).MatchString(statement) {
			t.Errorf("%s reads a table:\n%s", name, statement)
		}
	}
}
