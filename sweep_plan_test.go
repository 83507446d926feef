package idem_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A sweep of keysKept keys, of which keysOver are over, may read what is over, by so many
// buffers for each, and the ranges of the BRIN index that it is in: two of 32 pages.
const keysKept, keysOver, buffersEach, buffersOfRanges = 50_000, 100, 6, 2*32 + 8

// What is summarized is not read for the little of it that is over, if PostgreSQL has
// looked at the table since it had some keys. Of what is not summarized yet it reads all, and
// of a table that it knows nothing of, or of which it believes that the most is over.
func TestSweep_readsTheKeysThatAreOverAndNotTheTable(t *testing.T) {
	const summarize = "select brin_summarize_new_values('idem.idempotency_keys_expires_at')"
	for name, fill := range map[string]func(*testing.T, *pgxpool.Pool){
		"a table that is known": func(t *testing.T, pool *pgxpool.Pool) {
			exec(t, pool, rows, "over", keysOver, "-1 second", nil)
			exec(t, pool, rows, "live", keysKept, "1 day", nil)
			exec(t, pool, summarize)
			exec(t, pool, "analyze idem.idempotency_keys")
		},
		"a table that was small when it was looked at": func(t *testing.T, pool *pgxpool.Pool) {
			exec(t, pool, rows, "over", keysOver, "-1 second", nil)
			exec(t, pool, rows, "live", 20*keysOver, "1 day", nil)
			exec(t, pool, "vacuum analyze idem.idempotency_keys")
			exec(t, pool, rows, "more", keysKept, "2 days", nil)
			exec(t, pool, summarize)
		},
		// A range never forgets the oldest time that it has had: docs/runbooks/sweep-lag.md.
		"space that was used again, and an index made anew": func(t *testing.T, pool *pgxpool.Pool) {
			exec(t, pool, rows, "old", keysKept, "-1 day", nil)
			exec(t, pool, rows, "last", 1, "1 day", nil) // keeps vacuum from cutting the file
			exec(t, pool, summarize)
			exec(t, pool, "delete from idem.idempotency_keys where key like 'old%'")
			exec(t, pool, "vacuum idem.idempotency_keys")
			exec(t, pool, rows, "over", keysOver, "-1 second", nil)
			exec(t, pool, rows, "live", keysKept, "1 day", nil)
			exec(t, pool, "analyze idem.idempotency_keys")
			if n, _ := buffersOf(t, pool, keys.Entomb); n < keysKept/100 {
				t.Errorf("space that was used again costs %d buffers: docs/runbooks/sweep-lag.md need not speak of it", n)
			}
			exec(t, pool, "reindex index concurrently idem.idempotency_keys_expires_at")
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := pgtest.New(t)
			exec(t, pool, "alter table idem.idempotency_keys set (autovacuum_enabled = off)")
			fill(t, pool)
			for statement, most := range map[string]int{keys.Entomb: buffersOfRanges, keys.Sweep: keysOver*buffersEach + buffersOfRanges} {
				n, plan := buffersOf(t, pool, statement)
				if t.Logf("%d buffers, %d at most", n, most); n > most || strings.Contains(plan, "Seq Scan on idempotency_keys") {
					t.Errorf("it reads %d buffers, want %d at most:\n%s", n, most, plan)
				}
			}
		})
	}
}

// buffersOf is what a batch of a sweep reads, and its plan. It is undone.
func buffersOf(t *testing.T, pool *pgxpool.Pool, statement string) (n int, plan string) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	found, err := tx.Query(t.Context(), "explain (analyze, buffers) "+statement, 1000)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan = strings.Join(lines, "\n")
	top := regexp.MustCompile(`(?m)^  Buffers: (.*)$`).FindString(plan) // of the topmost node, with all below it
	for _, part := range regexp.MustCompile(`(hit|read)=(\d+)`).FindAllStringSubmatch(top, -1) {
		count, _ := strconv.Atoi(part[2])
		n += count
	}
	if n == 0 {
		t.Fatalf("the plan tells of no buffers:\n%s", plan)
	}
	return n, plan
}
