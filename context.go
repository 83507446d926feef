package idem

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem/internal/execution"
	"github.com/jackc/pgx/v5"
)

// Tx returns the transaction of the guarded handler that ctx belongs to. All
// that is written in it commits together with the answer, or not at all. The
// guard owns its end: Commit returns ErrTxOwned, Rollback makes the request end
// as not applied; Begin opens a savepoint, which the handler may end as it
// likes. Like any pgx.Tx it is not safe for concurrent use, and it is closed
// once the handler has returned. In a task's handler it is the worker's, and commits
// together with the end of the task.
//
// On a lease it is the one final transaction: it begins with its first statement, after
// every Call, and that statement and every later one return ErrLeaseLost if another has
// taken over the claim, or the task.
//
// Tx panics outside a guarded handler and a task's, since code that expects the guarantee
// must not run without it; TxFrom reports instead.
func Tx(ctx context.Context) pgx.Tx {
	tx, err := TxFrom(ctx)
	if err != nil {
		panic("idem: Tx called outside a guarded handler: pass on the context that the handler was given, or use TxFrom")
	}
	return tx
}

// TxFrom is Tx for code that also runs outside such handlers: there it
// returns an error for which errors.Is(err, ErrNoExecution) holds.
func TxFrom(ctx context.Context) (pgx.Tx, error) {
	x, ok := execution.From(ctx)
	if !ok {
		return nil, ErrNoExecution
	}
	return x.Tx(), nil
}

// KeyOf returns the key of the guarded request that ctx belongs to, and whose it is,
// for an effect that belongs to this intent and to no other. It reports false outside
// a guarded handler, in a task's, and for a request without a key.
func KeyOf(ctx context.Context) (scope, key string, ok bool) {
	x, ok := execution.From(ctx)
	if !ok {
		return "", "", false
	}
	door, scope, key := x.Cause()
	return scope, key, door == "request" && key != ""
}

// KeepWrites asks that, if the answer turns out to be a remembered refusal
// (402, 409 or 410 unless the route's policy says otherwise), the rows that the
// handler wrote are committed with it: the declined payment, for example. With
// any other answer it is ignored; if the transaction is aborted by then, the
// request ends as not applied. It panics outside a guarded handler.
func KeepWrites(ctx context.Context) {
	must(ctx, "KeepWrites").KeepWrites()
}

// AfterCommit registers fn to be called once the commit of the handler's writes
// is known, in the order of registration, before the answer is sent, if there is one. It
// is not called when the writes were rolled back, and it may be lost when the process
// dies after the commit: what must happen belongs into the transaction. The
// context given to fn outlives the client and ends after 10 s. A panic of fn is
// reported as an event and changes nothing. AfterCommit panics outside a
// guarded handler.
func AfterCommit(ctx context.Context, fn func(context.Context)) {
	must(ctx, "AfterCommit").AfterCommit(fn)
}

// Reference remembers ref instead of the body's bytes on a route that replays a
// resource; a repeat hands it to the route's Fetch. The last call counts. It
// panics outside a guarded handler and on an empty or a too long ref (more than
// MaxReference bytes).
func Reference(ctx context.Context, ref string) {
	if ref == "" || len(ref) > MaxReference || !utf8.ValidString(ref) || strings.IndexByte(ref, 0) >= 0 {
		panic("idem: Reference takes 1 to 1024 bytes of UTF-8 without NUL")
	}
	must(ctx, "Reference").Reference(ref)
}

// MaxReference is the longest reference in bytes: an id, a path or a URL.
const MaxReference = 1024

func must(ctx context.Context, caller string) execution.Execution {
	x, ok := execution.From(ctx)
	if !ok {
		panic("idem: " + caller + " called outside a guarded handler: pass on the context that the handler was given")
	}
	return x
}
