// Package migrations holds the schema as numbered, forward-only files and the
// statements that apply them.
package migrations

import (
	"embed"

	"github.com/idem-go/idem/internal/pgsql"
)

// Files are the numbered migrations, NNNN_name.sql.
//
//go:embed 0*.sql
var Files embed.FS

//go:embed migration_lock.sql
var lock string

//go:embed schema_version.sql
var schemaVersion string

// The statements around the numbered files.
var (
	Lock          = pgsql.Statement(lock)
	SchemaVersion = pgsql.Statement(schemaVersion)
)
