// Package check holds one statement for each invariant, named by its file. Each
// yields the broken rows as table, row and detail, and none when all is well.
package check

import "embed"

// Files are the invariants, NAME.sql.
//
//go:embed *.sql
var Files embed.FS
