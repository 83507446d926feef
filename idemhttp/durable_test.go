package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// TestDurable_whateverTheHandlerSays: an answer was stored for good before it was
// sent, even where the handler's session does not care.
func TestDurable_whateverTheHandlerSays(t *testing.T) {
	r := newRig(t)
	// The constraint is checked within COMMIT, so it sees what COMMIT goes by.
	if _, err := r.pool.Exec(t.Context(), `create table commits (key text, synchronous_commit text);
		create function note_commit() returns trigger language plpgsql as $$ begin
			insert into commits values (new.key, current_setting('synchronous_commit')); return null; end $$;
		create constraint trigger note_commit after insert on idem.idempotency_keys deferrable initially deferred
			for each row execute function note_commit()`); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	refuse := func(context.Context, pgx.Tx) error { return errors.New("409") }
	accept := func(context.Context, pgx.Tx) error { return nil }
	cases := map[string]struct {
		setting string
		then    attempt
		route   idemhttp.Route
		want    string
	}{
		"answered":      {"set local synchronous_commit = off", accept, idemhttp.Route{}, "on"},
		"session":       {"set synchronous_commit = off", accept, idemhttp.Route{}, "on"},
		"local":         {"set local synchronous_commit = local", accept, idemhttp.Route{}, "on"},
		"remote_write":  {"set local synchronous_commit = remote_write", accept, idemhttp.Route{}, "on"},
		"remote_apply":  {"set local synchronous_commit = remote_apply", accept, idemhttp.Route{}, "remote_apply"},
		"refused":       {"set synchronous_commit = off", refuse, idemhttp.Route{}, "on"},
		"refused-local": {"set local synchronous_commit = off", refuse, idemhttp.Route{}, "on"},
		"kept": {"set local synchronous_commit = off", func(ctx context.Context, tx pgx.Tx) error {
			idem.KeepWrites(ctx)
			return refuse(ctx, tx)
		}, idemhttp.Route{}, "on"},
		"withheld": {"set local synchronous_commit = off", refuse, idemhttp.Route{MaxStored: 1}, "on"},
		"unknown":  {"set synchronous_commit = off", execute("commit"), idemhttp.Route{}, "on"},
	}
	for name, c := range cases {
		mapping(r, "/"+escape(name), c.route, &runs, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, c.setting); err != nil {
				panic(err)
			}
			return c.then(ctx, tx)
		})
	}
	r.serve()
	for name, c := range cases {
		got := r.send(post("/"+escape(name), name, "{}"))
		if got.err != nil || got.status != http.StatusCreated && got.status != http.StatusConflict {
			t.Errorf("%s: got %d %q %v", name, got.status, got.body, got.err)
		}
		r.wantRows("select count(*) from commits where key = $1 and synchronous_commit = $2", 1, name, c.want)
	}
}
