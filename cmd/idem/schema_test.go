package main

import (
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestMigrate_fromNothing(t *testing.T) {
	url := pgtest.Empty(t)
	steps := []struct {
		name, stderr string
		code         int
		args         []string
	}{
		{"migrate_status_absent", "idem: " + notMigrated, exitFailed, []string{"migrate", "status"}},
		{"migrate_status_absent_json", "idem: " + notMigrated, exitFailed, []string{"migrate", "status", "--json"}},
		{"migrate_up", "", exitDone, []string{"migrate", "up"}},
		{"migrate_up_again", "idem: nothing to apply; the schema is at version 6", exitDone, []string{"migrate", "up"}},
		{"migrate_up_again_json", "", exitDone, []string{"migrate", "up", "--json"}},
		{"migrate_status_current", "", exitDone, []string{"migrate", "status"}},
		{"check_holds", "idem: every invariant holds", exitDone, []string{"check"}},
	}
	for _, step := range steps {
		got := command(t, on(url), step.args...)
		wantResult(t, got, step.code, step.stderr)
		golden(t, step.name, got.stdout)
	}
}

func TestMigrateUp_json(t *testing.T) {
	got := command(t, on(pgtest.Empty(t)), "migrate", "up", "--json")
	wantResult(t, got, exitDone, "")
	golden(t, "migrate_up_json", got.stdout)
}

func TestMigratePrint_makesTheSameSchema(t *testing.T) {
	printed := command(t, nil, "migrate", "print")
	wantResult(t, printed, exitDone, "")
	url := pgtest.Empty(t)
	execute(t, url, printed.stdout)
	wantResult(t, command(t, on(url), "migrate", "status"), exitDone, "")
	wantResult(t, command(t, on(url), "check"), exitDone, "idem: every invariant holds")
}

func TestSchema_notMigratedIsTold(t *testing.T) {
	url := pgtest.Empty(t)
	for _, args := range commandsOnASchema() {
		wantResult(t, command(t, on(url), args...), exitFailed, "idem: "+notMigrated)
	}
}

func TestSchema_newerThanTheProgramIsRefused(t *testing.T) {
	url := pgtest.NewURL(t)
	execute(t, url, "insert into idem.migrations (version, name) values (9, 'from the future')")
	const newer = "idem: the database's schema is newer than this program; install a newer idem"
	for _, args := range append(commandsOnASchema(), []string{"migrate", "up"}) {
		wantResult(t, command(t, on(url), args...), exitFailed, newer)
	}
	got := command(t, on(url), "migrate", "status")
	wantResult(t, got, exitFailed, "idem: the database's schema is at version 9, this program knows up to 6; install a newer idem")
	golden(t, "migrate_status_newer", got.stdout)
	execute(t, url, "delete from idem.migrations where version = 9")
}

func commandsOnASchema() [][]string {
	return [][]string{{"check"}, {"sweep"}, {"keys", "list"}, {"keys", "show", "k"}, {"why", "k"}, release("k"),
		{"effects", "list"}, {"effects", "show", "e"}, settle("e", "--absent"),
		{"tasks", "list"}, {"tasks", "show", "t"}, byHand("retry", "t"), byHand("cancel", "t", "--yes"), byHand("retry", "--all"),
		byHand("enqueue", "k", "--unkeyed", "--payload", "1"), byHand("pause", "q"), byHand("resume", "q")}
}

func TestReadOnly_writingIsRefusedAndReadingIsNot(t *testing.T) {
	const refused = "idem: the database is read-only: default_transaction_read_only is on for this role, database or connection"
	empty, migrated := readOnly(pgtest.Empty(t)), readOnly(pgtest.NewURL(t))
	wantResult(t, command(t, on(empty), "migrate", "up"), exitUnavailable, refused)
	wantResult(t, command(t, on(migrated), "sweep"), exitUnavailable, refused)
	wantResult(t, command(t, on(migrated), release("k")...), exitUnavailable, refused)
	wantResult(t, command(t, on(migrated), settle("e", "--absent")...), exitUnavailable, refused)
	for _, args := range [][]string{byHand("retry", "t"), byHand("cancel", "--all"), byHand("enqueue", "k", "--unkeyed", "--payload", "1"), byHand("pause", "q")} {
		wantResult(t, command(t, on(migrated), args...), exitUnavailable, refused)
	}
	wantResult(t, command(t, on(migrated), "migrate", "up"), exitDone, "idem: nothing to apply; the schema is at version 6")
	wantResult(t, command(t, on(migrated), "check"), exitDone, "idem: every invariant holds")
	wantResult(t, command(t, on(migrated), "keys", "list"), exitDone, "idem: no keys")
	if got := command(t, on(migrated), "why", "k"); got.code != exitNotFound {
		t.Errorf("why: got exit code %d and stderr %q, want %d", got.code, got.stderr, exitNotFound)
	}
}

// readOnly is url for connections that cannot write.
func readOnly(url string) string { return withParameter(url, "default_transaction_read_only=on") }

func withParameter(url, parameter string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameter
	}
	return url + "?" + parameter
}

func TestSweep_output(t *testing.T) {
	for name, args := range map[string][]string{"sweep": {"sweep"}, "sweep_json": {"sweep", "--json"}} {
		url := withKeys(t)
		got := command(t, on(url), args...)
		wantResult(t, got, exitDone, "")
		golden(t, name, got.stdout)
		golden(t, "sweep_left", command(t, on(url), "keys", "list").stdout)
	}
}

// What cannot be swept is told by the exit code of the first of it, in one line; what was
// done is printed all the same.
func TestSweep_outputWhereTablesFail(t *testing.T) {
	for name, args := range map[string][]string{"sweep_failed": {"sweep"}, "sweep_failed_json": {"sweep", "--json"}} {
		url := withKeys(t)
		execute(t, url, `create function refuse() returns trigger language plpgsql as
			$$ begin raise exception 'refused' using errcode = 'out_of_memory'; end $$;
			create trigger refuse before delete on idem.idempotency_keys for each row execute function refuse();
			create trigger refuse before delete on idem.takes execute function refuse();
			insert into idem.tasks (kind, payload, status, attempts, takes, fence, created_at, finished_at, expires_at)
			select 'k', '', 'done', 1, 1, gen_random_uuid(), now() - interval '2 hours', now() - interval '1 hour', now() - interval '1 second'`)
		got := command(t, on(url), args...)
		wantResult(t, got, exitUnavailable, "idem: unavailable: sweep idempotency_keys: ERROR: refused (SQLSTATE 53200); unavailable: sweep takes: ERROR: refused (SQLSTATE 53200)")
		golden(t, name, got.stdout)
	}
}

func TestCheck_namesBrokenRows(t *testing.T) {
	url := withKeys(t)
	t.Cleanup(func() { execute(t, url, "delete from idem.idempotency_keys") })
	execute(t, url, "alter table idem.idempotency_keys drop constraint state_columns")
	execute(t, url, "update idem.idempotency_keys set response_status = null where key = 'report'")
	wantCheck(t, url, "check_one", "idem: 1 row breaks an invariant")
	execute(t, url, "update idem.idempotency_keys set key = '' where key = 'charge'")
	wantCheck(t, url, "check_two", "idem: 2 rows break an invariant")
}

// wantCheck runs idem check, as text and as JSON.
func wantCheck(t *testing.T, url, name, stderr string) {
	t.Helper()
	for name, args := range map[string][]string{name: {"check"}, name + "_json": {"check", "--json"}} {
		got := command(t, on(url), args...)
		wantResult(t, got, exitCheck, stderr)
		golden(t, name, got.stdout)
	}
}

func TestMigrateUp_roleWithoutTheRightIsTold(t *testing.T) {
	url := pgtest.Empty(t)
	execute(t, url, "create role stranger login password 'stranger'")
	at, slash := strings.LastIndexByte(url, '@'), strings.LastIndexByte(url, '/')
	database, _, _ := strings.Cut(url[slash+1:], "?")
	got := command(t, on("postgres://stranger:stranger"+url[at:]), "migrate", "up")
	wantResult(t, got, exitFailed, "idem: migrate: migration 1 (keys): ERROR: permission denied for database "+database+
		" (SQLSTATE 42501); use a role with the right to do this")
}
