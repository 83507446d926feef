package shop

import (
	"embed"
	"strings"
)

//go:embed sql/*.sql
var files embed.FS

// statement returns the SQL of sql/NAME.sql without its header comment, so that
// what the server shows of a running statement begins with the statement.
func statement(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic("shop: no such statement: " + name)
	}
	lines := strings.Split(string(text), "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "--") {
		lines = lines[1:]
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
