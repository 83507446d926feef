// Package tx holds the statements that begin, bound and end transactions.
package tx

import (
	_ "embed"

	"github.com/idem-go/idem/internal/pgsql"
)

// The statements that open and end a request's transaction. The savepoint is the
// claim's own: refusals roll back to it, and its absence at the end tells that
// the handler has ended the transaction.
const (
	Savepoint           = "savepoint idem_claim"
	ReleaseSavepoint    = "release savepoint idem_claim"
	RollbackToSavepoint = "rollback to savepoint idem_claim"
	Commit              = "commit"
	Rollback            = "rollback"
	Undo                = RollbackToSavepoint + "; " + Rollback
)

//go:embed tx_limits.sql
var limits string

// Limits sets the limits of a transaction that is not a request's.
var Limits = pgsql.Statement(limits)

//go:embed tx_request_limits.sql
var requestLimits string

// RequestLimits sets the limits of a request's transaction.
var RequestLimits = pgsql.Statement(requestLimits)

//go:embed tx_by_index.sql
var byIndex string

// ByIndex keeps the planner from reading whole tables for a few rows of them.
var ByIndex = pgsql.Statement(byIndex)

//go:embed tx_by_any_index.sql
var byAnyIndex string

// ByAnyIndex is ByIndex for an index that needs a bitmap.
var ByAnyIndex = pgsql.Statement(byAnyIndex)

//go:embed standby_names.sql
var standbyNames string

// StandbyNames asks whether COMMIT waits for standbys.
var StandbyNames = pgsql.Statement(standbyNames)

//go:embed tx_id.sql
var id string

//go:embed tx_status.sql
var status string

// ID tells the transaction's id, Status how the transaction of an id ended.
var (
	ID     = pgsql.Statement(id)
	Status = pgsql.Statement(status)
)
