package claim

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCommits_seesAStatementThatCommitsWhereverItBegins(t *testing.T) {
	for sql, want := range map[string]bool{
		"":                        false,
		"select 1":                false,
		"select 1;":               false,
		"commit":                  true,
		"COMMIT;":                 true,
		"  \n\tCommit and chain":  true,
		"end":                     true,
		"End Work;":               true,
		"prepare transaction 'x'": true,
		"prepare\n /* a */ -- b\n TRANSACTION 'x'": true,
		"prepare q as select 1":                    false,
		"prepare transactions as select 1":         false,
		"commitment":                               false,
		"end_of_day()":                             false,
		"rollback":                                 false,
		"-- name: CreateOrder :one\ninsert into orders values ($1) returning id": false,
		"-- commit\nselect 1":                   false,
		"-- select 1\ncommit":                   true,
		"-- select 1\rcommit":                   true, // a carriage return ends a line, too
		"-- select 1":                           false,
		"/* commit; */ select 1":                false,
		"/* a /* b */ ; commit; */ select 1":    false,
		"/* a */ commit":                        true,
		"select 1; commit":                      true,
		";;commit":                              true,
		"select 1; -- a\n /* b */ end":          true,
		"select 'a; commit; b'":                 false,
		"select 'it''s; commit; b'":             false,
		"select 'a'; commit; select 'b'":        true,
		"select '\\'; commit; select ''":        true, // a backslash is itself in a string without E
		"select E'\\'; commit; --'":             false,
		"select e'\\\\'; commit":                true,
		"select name'\\'; commit; '":            true, // a type's name, and not an E
		"select \"a; commit; b\"":               false,
		"select $$ ; commit; $$":                false,
		"select $a$ ; commit; $b$; commit; $a$": false,
		"select $a$ x $a$; commit":              true,
		"select $1; commit":                     true,
		"select $1 ; select $2":                 false,
		"select a$b$; commit; select a$b$":      true, // names, and not quotes
		"select 1 - 2 / 3; commit":              true,
		"select case when a then b end":         false,
		"select 'open; commit":                  false,
		"select $$open; commit":                 false,
		"/* open; commit":                       false,
		"select $; commit":                      true,
		"update \u00e9$a$; commit; --$a$":       true,
	} {
		if got := commits(sql); got != want {
			t.Errorf("commits(%q) is %v, want %v", sql, got, want)
		}
	}
}

// What is quoted or commented, in any order, hides its semicolons and verbs, and nothing
// behind it.
func TestCommits_looksBehindWhateverIsQuoted(t *testing.T) {
	pieces := rapid.SampledFrom([]string{" ", "\n", "select a", "'; commit; '", "''", "\"; end; \"", "$$; commit; $$", "$q$; $$ commit; $q$",
		"-- ; commit;\n", "/* ; end; /* commit */ ; */", "E'\\'; commit; '", ", $1", " - 1", " / 2", ";", "; select e"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), " ")
		if commits(text) {
			t.Fatalf("%q commits nothing", text)
		}
		if !commits(text + " ; commit") {
			t.Fatalf("%q commits at its end", text+" ; commit")
		}
	})
}

func TestCommits_readsAnyTextToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commits(rapid.StringOf(rapid.RuneFrom([]rune("ce'\"$-/*;\\ \na1\u00e9"))).Draw(t, "sql"))
	})
}

func BenchmarkCommits(b *testing.B) {
	const sql = "-- name: CreateOrder :one\ninsert into orders (customer_id, amount, created_at) values ($1, $2, now()) returning id, created_at;\n"
	b.ReportAllocs()
	for b.Loop() {
		if commits(sql) {
			b.Fatal("it does not commit")
		}
	}
}
