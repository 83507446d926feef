//go:build idem_nolocks

package idemhttp_test

// advisoryLocks says whether the guard was built with advisory locks: then a
// duplicate in another process waits, without them it runs and loses.
const advisoryLocks = false
