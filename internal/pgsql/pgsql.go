// Package pgsql holds all of Idem's SQL as files, one per statement and one per
// state transition, by door. Each directory is a package that offers its
// statements as strings; the header of a file is its contract: what it does,
// its parameters, and what its rows mean. Zero rows is an answer.
package pgsql

import "strings"

// Statement returns the SQL of a file without its header comment, so that what
// the server shows of a running statement begins with the statement itself.
func Statement(file string) string {
	lines := strings.Split(file, "\n")
	for len(lines) > 0 && (strings.HasPrefix(lines[0], "--") || strings.TrimSpace(lines[0]) == "") {
		lines = lines[1:]
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \n;")
}
