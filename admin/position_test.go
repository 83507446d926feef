package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/admin"
	"pgregory.net/rapid"
)

func TestPosition_isReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := admin.Position{CreatedAt: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "µs")).UTC()}
		if rapid.Bool().Draw(t, "of a key") {
			want.Scope = rapid.StringN(1, 20, -1).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(t, "scope")
			want.Key = rapid.StringMatching(`[!-~]{1,20}`).Draw(t, "key")
		}
		got, err := admin.ParsePosition(want.String())
		if err != nil || !got.CreatedAt.Equal(want.CreatedAt) || got.Scope != want.Scope || got.Key != want.Key {
			t.Fatalf("%q: got %+v and error %v, want %+v", want, got, err, want)
		}
	})
}

func TestParsePosition_refusesAnythingElse(t *testing.T) {
	for _, text := range []string{
		"", "yesterday", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z,", "2026-01-31T12:00:00Z,a",
		"2026-01-31T12:00:00Z,,k", "2026-01-31T12:00:00Z,a,", "2026-01-31T12:00:00Z,a,b,c", "2026-01-31T12:00:00Z,%zz,k", ",a,k",
		"2026-01-31T12:00:00Z,%ff,k", "2026-01-31T12:00:00Z,a,%00",
	} {
		if got, err := admin.ParsePosition(text); !errors.Is(err, admin.ErrFilter) {
			t.Errorf("%q: got %+v and error %v, want ErrFilter", text, got, err)
		}
	}
}
