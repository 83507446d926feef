package metrics_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgsql/metrics"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// whole is a plan's word for reading all of a table of Idem's that may be large.
var whole = regexp.MustCompile(`Seq Scan on (tasks|idempotency_keys|applied_effects)\b`)

// What is scraped all the time must not read a large table whole, neither before
// PostgreSQL knows anything of it nor afterwards, nor once it plans for any argument.
func TestGauges_readNoLargeTableWhole(t *testing.T) {
	pool := pgtest.Broken(t)
	exec(t, pool, answered, "first", 20_000, "1 hour", nil)
	exec(t, pool, "insert into idem.applied_effects (scope, effect_key, status, result) select 's', 'e' || i, 'applied', '1' from generate_series(1, 20000) as i")
	exec(t, pool, dead, "mail", 30_000, "done", "1 hour")
	exec(t, pool, "update idem.tasks set last_error = null")
	exec(t, pool, dead, "mail", 500, "failed", "1 hour")
	exec(t, pool, waiting, "mail", 20_000, "-1 hour", false)
	exec(t, pool, running, "mail", 40, "1 hour")
	exec(t, pool, running, "mail", 40, "-2 days")
	conn, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Rollback(t.Context()) }()
	if _, err := conn.Exec(t.Context(), metrics.Begin, "20000"); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"set plan_cache_mode = force_custom_plan", "set plan_cache_mode = force_generic_plan", "analyze idem.tasks, idem.takes, idem.idempotency_keys, idem.applied_effects", "set plan_cache_mode = force_custom_plan"} {
		if _, err := conn.Exec(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		for sql, args := range map[string][]any{metrics.Backlog: {[]string{"mail", "x"}}, metrics.Unsettled: nil, metrics.SweepLag: nil} {
			rows, err := conn.Query(t.Context(), "explain (costs off) "+sql, args...)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if plan := strings.Join(lines, "\n"); err != nil || whole.MatchString(plan) {
				t.Errorf("after %s (%v):\n%s", state, err, plan)
			}
		}
	}
}
