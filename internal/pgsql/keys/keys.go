// Package keys holds the statements on idem.idempotency_keys: those that a
// claim runs for one scope and key, in the transaction or on a lease, and those of
// the sweeper.
package keys

import (
	_ "embed"

	"github.com/idem-go/idem/internal/pgsql"
)

//go:embed key_claim.sql
var claim string

//go:embed key_read.sql
var read string

//go:embed key_expire.sql
var expire string

//go:embed key_probe.sql
var probe string

//go:embed key_answer.sql
var answer string

//go:embed key_withhold.sql
var withhold string

//go:embed key_bind.sql
var bind string

//go:embed key_entomb.sql
var entomb string

//go:embed key_sweep.sql
var sweep string

//go:embed key_rival.sql
var rival string

//go:embed key_watch.sql
var watch string

//go:embed key_confirm.sql
var confirm string

//go:embed key_lease.sql
var lease string

//go:embed key_retake.sql
var retake string

//go:embed key_renew.sql
var renew string

//go:embed key_fence.sql
var fence string

//go:embed key_await.sql
var await string

//go:embed key_bound.sql
var bound string

//go:embed key_complete.sql
var complete string

//go:embed key_complete_withheld.sql
var completeWithheld string

//go:embed key_relinquish.sql
var relinquish string

//go:embed key_abandon.sql
var abandon string

//go:embed key_doubt.sql
var doubt string

// The statements; the header of each file is its contract.
var (
	Claim            = pgsql.Statement(claim)
	Read             = pgsql.Statement(read)
	Expire           = pgsql.Statement(expire)
	Probe            = pgsql.Statement(probe)
	Answer           = pgsql.Statement(answer)
	Withhold         = pgsql.Statement(withhold)
	Bind             = pgsql.Statement(bind)
	Entomb           = pgsql.Statement(entomb)
	Sweep            = pgsql.Statement(sweep)
	Rival            = pgsql.Statement(rival)
	Watch            = pgsql.Statement(watch)
	Confirm          = pgsql.Statement(confirm)
	Lease            = pgsql.Statement(lease)
	Retake           = pgsql.Statement(retake)
	Renew            = pgsql.Statement(renew)
	Fence            = pgsql.Statement(fence)
	Await            = pgsql.Statement(await)
	Bound            = pgsql.Statement(bound)
	Complete         = pgsql.Statement(complete)
	CompleteWithheld = pgsql.Statement(completeWithheld)
	Relinquish       = pgsql.Statement(relinquish)
	Abandon          = pgsql.Statement(abandon)
	Doubt            = pgsql.Statement(doubt)
)
