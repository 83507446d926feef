package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
)

// The exit codes. They are public: scripts depend on them.
const (
	exitDone        = 0 // done
	exitFailed      = 1 // failed; the message says what to do
	exitUsage       = 2 // the command line or the configuration is wrong
	exitNotFound    = 3 // what was asked for does not exist
	exitRefused     = 4 // refused: it would break a promise
	exitCheck       = 5 // an invariant or a proof does not hold
	exitUnavailable = 6 // the database is away, or cannot be written to
)

// exitError is an error that knows its exit code. Its text is the one line
// that the user sees.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exitWith gives err an exit code.
func exitWith(code int, err error) error { return &exitError{code: code, err: err} }

// exitf makes an error with an exit code, as fmt.Errorf makes one without.
func exitf(code int, format string, args ...any) error {
	return exitWith(code, fmt.Errorf(format, args...))
}

func usageError(err error) error { return exitWith(exitUsage, err) }

func usagef(format string, args ...any) error { return exitf(exitUsage, format, args...) }

// report writes err as one line and returns the exit code it stands for.
func report(ctx context.Context, stderr io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	code, text := explain(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		code, text = exitFailed, "interrupted"
	}
	for _, mark := range []string{"idem: ", "admin: ", "queue: ", "embedded: "} {
		text = strings.TrimPrefix(text, mark)
		text = strings.ReplaceAll(text, "\n"+mark, "; ") // errors that are joined
	}
	text = oneLine(text)
	fmt.Fprintf(stderr, "idem: %s\n", withoutCredentials(text))
	return code
}

// exampleCredentials are those of the URL that messages show as an example.
const exampleCredentials = "://user:password@"

// withoutCredentials hides what stands before the host of any other URL in text,
// such as one that was given as a wrong argument. Messages of ours hold none.
func withoutCredentials(text string) string {
	return regexp.MustCompile(`://\S*@`).ReplaceAllStringFunc(text, func(match string) string {
		if match == exampleCredentials {
			return match
		}
		return "://...@"
	})
}

// notMigrated is for a database without the schema and for one with an older.
const notMigrated = "the database is not migrated to this program's schema; run idem migrate up"

// conditions maps what the packages below report to an exit code and, where
// their text leaves the user alone, to a text of ours. The first match counts.
var conditions = [...]struct {
	err  error
	code int
	text string
}{
	{idem.ErrNotMigrated, exitFailed, notMigrated},
	{idem.ErrSchemaNewer, exitFailed, "the database's schema is newer than this program; install a newer idem"},
	{admin.ErrNotFound, exitNotFound, ""},
	{admin.ErrNoEffect, exitNotFound, ""},
	{admin.ErrNoTask, exitNotFound, ""},
	{admin.ErrTaskKey, exitUsage, ""},
	{queue.ErrTaskInvalid, exitUsage, ""},
	{queue.ErrMismatch, exitRefused, ""},
	{admin.ErrFilter, exitUsage, ""},
	{admin.ErrAudit, exitUsage, ""},
	{admin.ErrEffectKey, exitUsage, ""},
	{admin.ErrSettlement, exitUsage, ""},
	{admin.ErrRefused, exitRefused, ""},
	{admin.ErrReadOnly, exitUnavailable, ""},
	{idem.ErrKeyInvalid, exitUsage, ""},
	{idem.ErrScopeInvalid, exitUsage, ""},
	{idem.ErrUnavailable, exitUnavailable, ""},
}

// explain chooses the exit code and the line for err.
func explain(err error) (code int, text string) {
	var coded *exitError
	if errors.As(err, &coded) {
		return coded.code, err.Error()
	}
	if code, text, ok := explainDatabase(err); ok {
		return code, text
	}
	for _, c := range conditions {
		if errors.Is(err, c.err) {
			return c.code, cmp.Or(c.text, err.Error())
		}
	}
	return exitFailed, err.Error()
}

// oneLine joins the lines of text: drivers list one attempt per line, and a
// message is one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
