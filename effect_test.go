package idem_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// invalid are effects that cannot be, and what their error says that is to be done.
var invalid = map[string]struct {
	change func(*idem.Effect)
	says   string
}{
	"no scope":                {func(e *idem.Effect) { e.Scope = "" }, "scope"},
	"a scope with NUL":        {func(e *idem.Effect) { e.Scope = "a\x00" }, "NUL"},
	"a scope too long":        {func(e *idem.Effect) { e.Scope = strings.Repeat("s", idem.MaxScope+1) }, "255"},
	"no key":                  {func(e *idem.Effect) { e.Key = "" }, "it must have 1 to 512"},
	"a key too long":          {func(e *idem.Effect) { e.Key = strings.Repeat("k", idem.MaxEffectKey+1) }, "513 bytes; it must have 1 to 512"},
	"a key with a space":      {func(e *idem.Effect) { e.Key = "a b" }, "byte 2 is not visible ASCII"},
	"a key beyond ASCII":      {func(e *idem.Effect) { e.Key = "ключ" }, "byte 1 is not visible ASCII"},
	"an input of functions":   {func(e *idem.Effect) { e.Input = func() {} }, "Effect.Input cannot be encoded"},
	"an input of channels":    {func(e *idem.Effect) { e.Input = make(chan int) }, "use a type that encoding/json can marshal"},
	"an input not a number":   {func(e *idem.Effect) { e.Input = math.NaN() }, "Effect.Input cannot be encoded"},
	"an input over the limit": {func(e *idem.Effect) { e.Input = strings.Repeat("i", idem.MaxInput) }, "at most 1048576 are allowed: keep a reference instead"},
}

// wantInvalid fails unless err is ErrEffectInvalid and says so.
func wantInvalid(t *testing.T, name string, err error, says string) {
	t.Helper()
	if !errors.Is(err, idem.ErrEffectInvalid) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want ErrEffectInvalid that says %q", name, err, says)
	}
}

func TestApply_badInputIsAnErrorThatWritesNothing(t *testing.T) {
	pool := ledger(t)
	tx := begin(t, pool, pgx.ReadCommitted)
	var ran int
	for name, c := range invalid {
		e := posting
		c.change(&e)
		_, applied, err := idem.Apply(t.Context(), tx, e, postOnce(&ran))
		wantInvalid(t, name, err, c.says)
		if applied {
			t.Errorf("%s was applied", name)
		}
	}
	_, _, err := idem.Apply[entry](t.Context(), tx, posting, nil)
	wantInvalid(t, "no function", err, "give Apply what it is to do")
	_, _, err = idem.Apply(t.Context(), nil, posting, postOnce(&ran))
	wantInvalid(t, "no transaction", err, "give Apply idem.Tx(ctx), or one of your own")
	_, _, err = idem.Apply(t.Context(), tx, posting, func(context.Context, pgx.Tx) (chan int, error) { ran++; return nil, nil })
	wantInvalid(t, "a result of a type that cannot be encoded", err, "return a type that encoding/json can marshal")
	for name, result := range map[string]any{
		"a result that cannot be encoded": make(chan int),
		"a result that is not a number":   math.Inf(1),
		"a result over the limit":         strings.Repeat("r", idem.MaxResult),
	} {
		_, applied, err := idem.Apply(t.Context(), tx, posting, func(ctx context.Context, tx pgx.Tx) (any, error) {
			exec2(t, tx, "insert into ledger (amount) values (1)")
			return result, nil
		})
		wantInvalid(t, name, err, "the result")
		if applied {
			t.Errorf("%s was applied", name)
		}
	}
	if ran != 0 {
		t.Errorf("functions ran %d times", ran)
	}
	commit(t, tx)
	_, _, err = idem.Apply(t.Context(), tx, posting, postOnce(&ran))
	if !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("on a closed transaction: %v", err)
	}
	wantCount(t, pool, "select count(*) from ledger", 0)
	wantCount(t, pool, "select count(*) from idem.applied_effects", 0)
}

func TestCall_outsideALeaseIsAnError(t *testing.T) {
	ran := 0
	_, err := idem.Call(t.Context(), posting, func(context.Context, string) (entry, error) { ran++; return entry{}, nil })
	if !errors.Is(err, idem.ErrNoLease) || !strings.Contains(err.Error(), "set Route.Lease, or handle the task with HandleLeased") || ran != 0 {
		t.Errorf("got %v after %d calls", err, ran)
	}
	_, err = idem.Call[entry](t.Context(), posting, nil)
	wantInvalid(t, "no function", err, "give Call what it is to do")
}

func TestNotApplied_keepsItsCause(t *testing.T) {
	cause := errors.New("declined before it was sent")
	err := idem.NotApplied(cause)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("got %v", err)
	}
	if idem.NotApplied(nil) != nil {
		t.Error("NotApplied(nil) is an error")
	}
}

// The limits themselves are allowed.
func TestApply_takesTheLargest(t *testing.T) {
	pool := ledger(t)
	tx := begin(t, pool, pgx.ReadCommitted)
	e := idem.Effect{Scope: strings.Repeat("s", idem.MaxScope), Key: strings.Repeat("k", idem.MaxEffectKey),
		Input: strings.Repeat("i", idem.MaxInput-2), Timeout: -time.Second, Provider: idem.Keyed(0)} // which Apply ignores
	want := strings.Repeat("r", idem.MaxResult-2)
	for _, first := range []bool{true, false} {
		got, applied, err := idem.Apply(t.Context(), tx, e, func(context.Context, pgx.Tx) (string, error) { return want, nil })
		if err != nil || applied != first || got != want {
			t.Fatalf("applied %v, %v, %d bytes", applied, err, len(got))
		}
	}
	commit(t, tx)
}
