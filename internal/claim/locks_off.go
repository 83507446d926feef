//go:build idem_nolocks

package claim

const advisoryLocks = false
