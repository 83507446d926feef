//go:build !idem_nolocks

package claim

// advisoryLocks says whether claims take advisory locks. They only save work;
// the tag idem_nolocks compiles them out, for the tests that show it.
const advisoryLocks = true
