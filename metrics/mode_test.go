package metrics_test

import (
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The numbers are read in every mode of pgx's, also in those for poolers, and what holds for
// the reading is over with it.
func TestGauges_areReadInEveryModeAndLeaveNothingBehind(t *testing.T) {
	url := pgtest.Direct(t, pgtest.NewURL(t)) // no pooler can prepare in all of them
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DefaultQueryExecMode, config.MaxConns = mode, 1
		pool := pgtest.PoolWith(t, config)
		var before, after [2]string
		const settings = "select current_setting('enable_seqscan'), current_setting('statement_timeout')"
		if err := pool.QueryRow(t.Context(), settings).Scan(&before[0], &before[1]); err != nil {
			t.Fatal(err)
		}
		if m := measure(t, metrics.Config{Pool: pool}); m.scrape(t)["idem_database_up"] != 1 {
			t.Errorf("%s: the numbers are missing", mode)
		}
		if err := pool.QueryRow(t.Context(), settings).Scan(&after[0], &after[1]); err != nil || before != after {
			t.Errorf("%s: the settings are %v (%v), and were %v", mode, after, err, before)
		}
	}
}
