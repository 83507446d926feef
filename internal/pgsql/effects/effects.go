// Package effects holds the statements on idem.applied_effects that a program's
// effects run, for one scope and key.
package effects

import (
	_ "embed"

	"github.com/idem-go/idem/internal/pgsql"
)

//go:embed instance.sql
var instance string

//go:embed effect_insert.sql
var insert string

//go:embed effect_again.sql
var again string

//go:embed effect_applied.sql
var applied string

//go:embed effect_start.sql
var start string

//go:embed effect_restart.sql
var restart string

//go:embed effect_read.sql
var read string

//go:embed effect_record.sql
var record string

//go:embed effect_retract.sql
var retract string

//go:embed effect_doubt.sql
var doubt string

//go:embed effect_outlast.sql
var outlast string

//go:embed effect_find_applied.sql
var findApplied string

//go:embed effect_find_absent.sql
var findAbsent string

// The statements; the header of each file is its contract.
var (
	Instance    = pgsql.Statement(instance)
	Insert      = pgsql.Statement(insert)
	Again       = pgsql.Statement(again)
	Applied     = pgsql.Statement(applied)
	Start       = pgsql.Statement(start)
	Restart     = pgsql.Statement(restart)
	Read        = pgsql.Statement(read)
	Record      = pgsql.Statement(record)
	Retract     = pgsql.Statement(retract)
	Doubt       = pgsql.Statement(doubt)
	Outlast     = pgsql.Statement(outlast)
	FindApplied = pgsql.Statement(findApplied)
	FindAbsent  = pgsql.Statement(findAbsent)
)
