package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5/pgconn"
)

// explainDatabase chooses the exit code and the line for what a database said,
// or for its silence. ok is false for errors that are not about that.
func explainDatabase(err error) (code int, text string, ok bool) {
	var connectErr *pgconn.ConnectError
	if errors.As(err, &connectErr) {
		return exitUnavailable, fmt.Sprintf("cannot connect to the database: %s; %s", connectCause(connectErr), connectAdvice(err)), true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return 0, "", false
	}
	switch class := pgErr.Code[:min(2, len(pgErr.Code))]; {
	case pgErr.Code == "25006":
		return exitUnavailable, "the database is read-only; connect to the primary, or turn default_transaction_read_only off", true
	case pgErr.Code == "42501":
		return exitFailed, withoutMark(err) + "; use a role with the right to do this", true
	case class == "08" || class == "53" || class == "57" || class == "58":
		return exitUnavailable, err.Error(), true
	default: // the database is there, and refused a statement
		return exitFailed, withoutMark(err), true
	}
}

// withoutMark is the text of err without that of idem.ErrUnavailable, which the
// library puts on every failure of a statement.
func withoutMark(err error) string {
	return strings.TrimPrefix(err.Error(), idem.ErrUnavailable.Error()+": ")
}

// connectCause is why the last attempt to connect failed: the driver tries every
// address with and without TLS, and lists them all.
func connectCause(err *pgconn.ConnectError) string {
	attempts := strings.Split(strings.TrimSpace(err.Unwrap().Error()), "\n")
	return strings.TrimSpace(attempts[len(attempts)-1])
}

// connectAdvice says what to do about a connection that was not to be had.
func connectAdvice(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return "check that it is running and that the database URL is right"
	}
	switch {
	case strings.HasPrefix(pgErr.Code, "28"):
		return "check user and password in the database URL"
	case pgErr.Code == "3D000":
		return "create the database, or correct the database URL"
	case strings.HasPrefix(pgErr.Code, "53"), strings.HasPrefix(pgErr.Code, "57"):
		return "try again in a moment"
	default:
		return "correct the database URL"
	}
}
