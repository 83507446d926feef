package embedded

import (
	"os"
	"strconv"
	"strings"
)

// isPostgres says whether a living process is a PostgreSQL server, as far as
// we may know.
func isPostgres(pid int) bool {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return !os.IsNotExist(err)
	}
	return strings.HasPrefix(string(name), "post") // postgres or postmaster
}
