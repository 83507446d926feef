package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// noteDurability notes, at every COMMIT that changed what must outlive a crash, the
// setting it is made with. What a renewal writes, and what lets go of a claim, need not:
// losing it costs a wait.
const noteDurability = `
	create table durability (tbl text, op text, became text, setting text);
	create function note() returns trigger language plpgsql as $$ begin
		if tg_table_name = 'idempotency_keys' and tg_op = 'UPDATE' then
			if old.fence = new.fence and old.state = new.state and old.bound is not distinct from new.bound then
				return null;
			end if;
		end if;
		insert into durability values (tg_table_name, tg_op,
			case tg_table_name when 'idempotency_keys' then to_jsonb(new) ->> 'state' else to_jsonb(new) ->> 'status' end,
			current_setting('synchronous_commit'));
		return null;
	end $$;
	create constraint trigger note after insert or update on idem.idempotency_keys
		deferrable initially deferred for each row execute function note();
	create constraint trigger note after insert or update on idem.applied_effects
		deferrable initially deferred for each row execute function note()`

func TestDurable_claimsIntentionsResultsAndAnswersCommitWithOn(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Direct(t, pgtest.NewURL(t))
			pool := pgtest.Pool(t, url+"&synchronous_commit="+set)
			r := rigOn(t, pool)
			if _, err := pool.Exec(t.Context(), noteDurability); err != nil {
				t.Fatal(err)
			}
			for path, do := range durableWork(r, want) {
				r.handle(path, onALease, func(w http.ResponseWriter, req *http.Request) { do(w, req.Context()) })
			}
			r.handle("/transaction", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				if _, _, err := idem.Apply(req.Context(), idem.Tx(req.Context()), named("transaction"), one); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusUnprocessableEntity)
			})
			r.serve()
			for path := range durableWork(r, want) {
				r.send(post(path, path[1:], "{}"))
				r.endCalls()
				r.send(post(path, path[1:], "{}")) // takes over what is left of it
			}
			r.send(post("/transaction", "transaction", "{}"))
			if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				_, _, err := idem.Apply(t.Context(), tx, named("plain"), one)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			rows, err := pool.Query(t.Context(), "select tbl || ' ' || op || ' ' || became, array_agg(distinct setting) from durability group by 1")
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string][]string{}
			var what string
			var settings []string
			if _, err := pgx.ForEachRow(rows, []any{&what, &settings}, func() error { seen[what] = settings; return nil }); err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"idempotency_keys INSERT claimed", "idempotency_keys UPDATE claimed", "idempotency_keys UPDATE answered",
				"idempotency_keys UPDATE withheld", "idempotency_keys UPDATE unknown",
				"applied_effects INSERT started", "applied_effects UPDATE started", "applied_effects UPDATE applied",
				"applied_effects UPDATE unknown", "applied_effects UPDATE absent"} {
				if len(seen[what]) == 0 {
					t.Errorf("%s was not seen", what)
				}
			}
			for what, settings := range seen {
				if len(settings) != 1 || settings[0] != want {
					t.Errorf("%s commits with %v, want %s", what, settings, want)
				}
			}
		})
	}
}

func named(key string) idem.Effect { return idem.Effect{Scope: "shop", Key: key} }

func one(context.Context, pgx.Tx) (int, error) { return 1, nil }

// durableWork are handlers that together make every transition which must outlive a
// crash.
func durableWork(r *rig, want string) map[string]func(http.ResponseWriter, context.Context) {
	call := func(ctx context.Context, e idem.Effect, err error) error {
		_, got := idem.Call(ctx, e, func(context.Context, string) (int, error) { return 1, err })
		return got
	}
	failed := errors.New("the bank hung up")
	return map[string]func(http.ResponseWriter, context.Context){
		"/called": func(_ http.ResponseWriter, ctx context.Context) { _ = call(ctx, named("called"), nil) },
		"/final": func(_ http.ResponseWriter, ctx context.Context) {
			_, _, _ = idem.Apply(ctx, idem.Tx(ctx), named("final"), one)
		},
		"/withheld": func(w http.ResponseWriter, _ context.Context) { _, _ = w.Write(make([]byte, 2<<20)) },
		"/doubted":  func(_ http.ResponseWriter, ctx context.Context) { _ = call(ctx, named("doubted"), failed) },
		"/retracted": func(w http.ResponseWriter, ctx context.Context) {
			_ = call(ctx, named("retracted"), idem.NotApplied(failed))
			w.WriteHeader(http.StatusInternalServerError)
		},
		"/repeated": func(_ http.ResponseWriter, ctx context.Context) {
			n := 0
			e := named("repeated")
			e.Provider = idem.Keyed(time.Hour)
			_, _ = idem.Call(ctx, e, func(context.Context, string) (int, error) {
				if n++; n == 1 {
					return 0, failed
				}
				return n, nil
			})
		},
		"/outlasted": func(w http.ResponseWriter, ctx context.Context) {
			// That row is the test's, so it is committed as durably as Idem's.
			_, _ = r.pool.Exec(ctx, `with durable as materialized (select set_config('synchronous_commit', $1, true))
				insert into idem.applied_effects (scope, effect_key, status, downstream_key, fence, intended_at, call_until)
				select 'shop', 'outlasted', 'started', 'x', gen_random_uuid(), now(), now() from durable on conflict do nothing`, want)
			_ = call(ctx, named("outlasted"), nil)
		},
		"/found": func(_ http.ResponseWriter, ctx context.Context) {
			e := named("found")
			e.Reconcile = func(context.Context, string) (idem.Evidence, error) { return idem.Found(1), nil }
			_ = call(ctx, e, failed)
		},
		"/missing": func(_ http.ResponseWriter, ctx context.Context) {
			e := named("missing")
			e.Reconcile = func(context.Context, string) (idem.Evidence, error) { return idem.Missing(), nil }
			_ = call(ctx, e, failed)
		},
		"/own": func(_ http.ResponseWriter, ctx context.Context) {
			_ = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
				_, _, err := idem.Apply(ctx, tx, named("own"), one)
				return err
			})
		},
		"/commits": func(_ http.ResponseWriter, ctx context.Context) { _ = execute("commit")(ctx, idem.Tx(ctx)) },
	}
}

// endCalls makes every call one that can not be under way any more, unnoted.
func (r *rig) endCalls() {
	r.t.Helper()
	err := pgx.BeginFunc(context.Background(), r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), `set local session_replication_role = replica;
			update idem.applied_effects set call_until = now() - interval '1 second' where call_until is not null`)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
