// Package sqlstate sorts what PostgreSQL, or the way to it, says when something
// fails (PostgreSQL, appendix A).
package sqlstate

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The codes that the protocol tells apart.
const (
	UniqueViolation      = "23505"
	SerializationFailure = "40001"
	DeadlockDetected     = "40P01"
	InFailedTransaction  = "25P02"
	NoSuchSavepoint      = "3B001"
	LockNotAvailable     = "55P03"
	UndefinedTable       = "42P01"
	UndefinedSchema      = "3F000"
)

// transientClasses are the classes of errors that say nothing about what was
// asked: connections, rollbacks by the server, resources, operators, system and
// internal errors. transientCodes are their relatives in other classes:
// read-only, the transaction limits, and a lock that was not to be had.
var (
	transientClasses = []string{"08", "40", "53", "57", "58", "XX"}
	transientCodes   = []string{"25006", "25P03", "25P04", LockNotAvailable}
)

// Code is the SQLSTATE of a server's error, or nothing.
func Code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Transient reports whether err is a server's error after which the same may
// succeed at another time, so that no answer may be remembered.
func Transient(err error) bool {
	code := Code(err)
	for _, class := range transientClasses {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	for _, c := range transientCodes {
		if code == c {
			return true
		}
	}
	return false
}

// Rerunnable reports whether the same work may succeed if it is done again at
// once.
func Rerunnable(err error) bool {
	code := Code(err)
	return code == SerializationFailure || code == DeadlockDetected
}

// Fatal reports whether err ended the connection, or is none of the server's, so
// that it does not tell whether what was sent took effect.
func Fatal(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err != nil
	}
	return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC"
}

// Permanent reports whether err is a server's answer that asking again does not
// change: a missing right, a missing table, a value that cannot be stored.
func Permanent(err error) bool { return err != nil && !Fatal(err) && !Transient(err) }
