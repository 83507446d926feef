package admin_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// names are "scope key" of each key, in order.
func names(keys []admin.Key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, k.Scope+" "+k.Key)
	}
	return all
}

func TestListKeys_filters(t *testing.T) {
	db := open(t, planted{"a", "one", 30}, planted{"b", "one", 20}, planted{"a", "two", 20}, planted{"a", "three", 10})
	second, err := admin.ShowKey(t.Context(), db, "b", "one")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		filter admin.KeyFilter
		want   []string
	}{
		{"all, newest first, then by scope", admin.KeyFilter{}, []string{"a three", "a two", "b one", "a one"}},
		{"a scope", admin.KeyFilter{Scope: "b"}, []string{"b one"}},
		{"no such scope", admin.KeyFilter{Scope: "c"}, nil},
		{"a state", admin.KeyFilter{State: admin.StateAnswered, Scope: "a"}, []string{"a three", "a two", "a one"}},
		{"another state", admin.KeyFilter{State: admin.StateUnknown}, nil},
		{"a limit", admin.KeyFilter{Limit: 2}, []string{"a three", "a two"}},
		{"before a key", admin.KeyFilter{Before: second.Position()}, []string{"a one"}},
		{"before a time", admin.KeyFilter{Before: admin.Position{CreatedAt: second.CreatedAt}}, []string{"a one"}},
		{"before a key of the same time", admin.KeyFilter{Before: admin.Position{CreatedAt: second.CreatedAt, Scope: "a", Key: "two"}}, []string{"b one", "a one"}},
	}
	for _, tt := range tests {
		got, err := admin.ListKeys(t.Context(), db, tt.filter)
		if err != nil || !slices.Equal(names(got), tt.want) {
			t.Errorf("%s: got %v and error %v, want %v", tt.name, names(got), err, tt.want)
		}
	}
}

func TestListKeys_wrongFilterIsRefused(t *testing.T) {
	db := open(t)
	for _, filter := range []admin.KeyFilter{
		{Limit: -1}, {Limit: admin.MaxLimit + 1}, {State: "done"}, {Scope: "a\x00b"}, {Scope: string(make([]byte, 256))},
	} {
		if _, err := admin.ListKeys(t.Context(), db, filter); !errors.Is(err, admin.ErrFilter) {
			t.Errorf("%+v: got error %v, want ErrFilter", filter, err)
		}
	}
}

func TestShowKey_tellsAllThatIsStored(t *testing.T) {
	db := open(t, planted{"a", "one", 30}, planted{"b", "one", 30})
	got, err := admin.ShowKey(t.Context(), db, "b", "one")
	if err != nil {
		t.Fatal(err)
	}
	print := sha256.Sum256([]byte("one"))
	header := []idem.HeaderField{{Name: "ETag", Value: `"1"`}, {Name: "Link", Value: "</a>"}, {Name: "Link", Value: "</b>"}}
	switch {
	case got.Scope != "b" || got.Key != "one" || got.State != admin.StateAnswered || got.Status != 201:
		t.Errorf("got %+v", got)
	case string(got.Body) != "bone" || got.BodyBytes != 4 || got.Reference != "":
		t.Errorf("got body %q of %d bytes and reference %q", got.Body, got.BodyBytes, got.Reference)
	case !slices.Equal(got.Header, header):
		t.Errorf("got header %v, want %v", got.Header, header)
	case !slices.Equal(got.Fingerprint, print[:]) || got.FingerprintVersion != 1:
		t.Errorf("got fingerprint %x of version %d", got.Fingerprint, got.FingerprintVersion)
	case got.Expired || got.ExpiresAt.Before(got.CreatedAt) || !got.TombstoneUntil.IsZero():
		t.Errorf("got times %v %v %v, expired %v", got.CreatedAt, got.ExpiresAt, got.TombstoneUntil, got.Expired)
	}
}

func TestShowKey_otherScopeIsNotFound(t *testing.T) {
	db := open(t, planted{"a", "one", 30})
	if _, err := admin.ShowKey(t.Context(), db, "b", "one"); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
	if _, err := admin.ShowKey(t.Context(), db, "", "one"); !errors.Is(err, idem.ErrScopeInvalid) {
		t.Errorf("got error %v, want ErrScopeInvalid", err)
	}
	if _, err := admin.ShowKey(t.Context(), db, "a", ""); !errors.Is(err, idem.ErrKeyInvalid) {
		t.Errorf("got error %v, want ErrKeyInvalid", err)
	}
}

func TestFindKey_everyScopeThatHasIt(t *testing.T) {
	db := open(t, planted{"b", "one", 30}, planted{"a", "one", 10}, planted{"a", "two", 30})
	got, err := admin.FindKey(t.Context(), db, "one")
	if want := []string{"a one", "b one"}; err != nil || !slices.Equal(names(got), want) {
		t.Errorf("got %v and error %v, want %v", names(got), err, want)
	}
	if got, err := admin.FindKey(t.Context(), db, "three"); err != nil || len(got) != 0 {
		t.Errorf("got %v and error %v, want nothing", names(got), err)
	}
	if _, err := admin.FindKey(t.Context(), db, ""); !errors.Is(err, idem.ErrKeyInvalid) {
		t.Errorf("got error %v, want ErrKeyInvalid", err)
	}
}

func TestKeys_databaseGoneIsUnavailable(t *testing.T) {
	db := goneAfterOpen(t)
	_, list := admin.ListKeys(t.Context(), db, admin.KeyFilter{})
	_, find := admin.FindKey(t.Context(), db, "one")
	_, show := admin.ShowKey(t.Context(), db, "a", "one")
	_, why := admin.Why(t.Context(), db, "a", "one")
	_, scopes := admin.Scopes(t.Context(), db, "one")
	_, freed := admin.ReleaseKey(t.Context(), db, release("one"))
	for name, err := range map[string]error{"list": list, "find": find, "show": show, "why": why, "scopes": scopes, "release": freed, "writable": admin.Writable(t.Context(), db.Pool())} {
		if !errors.Is(err, idem.ErrUnavailable) {
			t.Errorf("%s: got error %v, want ErrUnavailable", name, err)
		}
	}
}

// goneAfterOpen returns a handle whose database lets nobody in any more.
func goneAfterOpen(t *testing.T) *idem.DB {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pgtest.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	away := false
	cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return !away, nil }
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if away {
			c.Host, c.Port = "127.0.0.1", 1
			c.Fallbacks = nil
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db, err := idem.Open(t.Context(), pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	away = true
	return db
}

func TestKeys_cancelledIsNotUnavailable(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := admin.ListKeys(ctx, db, admin.KeyFilter{})
	if !errors.Is(err, context.Canceled) || errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got error %v, want context.Canceled alone", err)
	}
}

func TestWritable_readOnlyIsTold(t *testing.T) {
	pool := pgtest.New(t)
	if err := admin.Writable(t.Context(), pool); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	cfg := pool.Config()
	cfg.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	reader, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := admin.Writable(t.Context(), reader); !errors.Is(err, admin.ErrReadOnly) {
		t.Errorf("got error %v, want ErrReadOnly", err)
	}
}
