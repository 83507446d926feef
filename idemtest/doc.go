// Package idemtest is for tests of your own handlers: a PostgreSQL database for
// each test (New), the same request over and over (Repeat), one attempt at a task
// (RunTask), and the handler of either killed at every step of its work
// (KillEverywhere, KillProcess).
//
// The tests need no server and no environment. Unless it is given another, a test
// binary starts a PostgreSQL server of its own when the first test asks for a
// database, from the binaries found on the machine or fetched. It ends with the
// process, however that ends; Main and Stop end it sooner. On Unix only.
//
// Everything here may be used by parallel tests.
package idemtest
