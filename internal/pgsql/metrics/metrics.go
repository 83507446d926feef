// Package metrics holds the statements of what is measured in the database. Each looks at a
// bounded number of rows, by an index where the table is large.
package metrics

import (
	_ "embed"

	"github.com/idem-go/idem/internal/pgsql"
)

//go:embed numbers_begin.sql
var begin string

//go:embed tasks_backlog.sql
var backlog string

//go:embed effects_unsettled.sql
var unsettled string

//go:embed oldest_transaction.sql
var oldestTransaction string

//go:embed sweep_lag.sql
var sweepLag string

// The statements; the header of each file is its contract.
var (
	Begin             = pgsql.Statement(begin)
	Backlog           = pgsql.Statement(backlog)
	Unsettled         = pgsql.Statement(unsettled)
	OldestTransaction = pgsql.Statement(oldestTransaction)
	SweepLag          = pgsql.Statement(sweepLag)
)
