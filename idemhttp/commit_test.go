package idemhttp_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

func TestD1_workOfAClientThatWentAwayIsFinished(t *testing.T) {
	r := newRig(t)
	gone := make(chan struct{}, 1)
	r.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			context.AfterFunc(req.Context(), func() {
				select {
				case gone <- struct{}{}:
				default:
				}
			})
			next.ServeHTTP(w, req)
		})
	}
	var g *gate
	var runs atomic.Int64
	var cancelled atomic.Bool
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		g.pass()
		cancelled.Store(req.Context().Err() != nil)
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("done"))
	})
	r.serve()
	g = newGate(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan reply, 1)
	go func() { got <- r.sendContext(ctx, post("/x", "k", "{}")) }()
	g.inside(t)
	cancel()
	if first := <-got; first.err == nil {
		t.Fatalf("the client that went away got %d", first.status)
	}
	<-gone // the server has noticed
	duplicate := r.begin(post("/x", "k", "{}"))
	r.waiters("k", 1)
	g.release()
	if d := <-duplicate; d.status != 201 || d.body != "done" || !d.replayed() {
		t.Errorf("the retry got %d %q, replayed %v", d.status, d.body, d.replayed())
	}
	if cancelled.Load() || runs.Load() != 1 {
		t.Errorf("the handler's context was cancelled: %v; it ran %d times, want false, once", cancelled.Load(), runs.Load())
	}
	r.wantRows("select count(*) from orders", 1)
	r.wantState("k", "answered")
}

// deferred are constraints that are checked by COMMIT.
var deferred = map[string]struct{ schema, violate, repair string }{
	"unique": {
		"create table seats (seat int unique deferrable initially deferred)",
		"insert into seats values (1), (1)", "alter table seats drop constraint seats_seat_key"},
	"foreign key": {
		"create table shows (id int primary key); create table seats (show int references shows deferrable initially deferred)",
		"insert into seats values (7)", "insert into shows values (7)"},
	"trigger": {
		`create table seats (seat int);
		create function full_house() returns trigger language plpgsql as $$ begin raise exception 'full'; end $$;
		create constraint trigger full_house after insert on seats deferrable initially deferred for each row execute function full_house()`,
		"insert into seats values (1)", "drop trigger full_house on seats"},
}

func TestD10_deferredConstraintIsNotApplied(t *testing.T) {
	for name, c := range deferred {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if _, err := r.pool.Exec(t.Context(), c.schema); err != nil {
				t.Fatal(err)
			}
			var runs atomic.Int64
			route := idemhttp.Route{KeyOptional: true}
			mapping(r, "/x", route, &runs, execute(c.violate))
			mapping(r, "/keeps", route, &runs, func(ctx context.Context, tx pgx.Tx) error {
				idem.KeepWrites(ctx)
				if err := execute(c.violate)(ctx, tx); err != nil {
					panic(err)
				}
				return context.Canceled // 409
			})
			mapping(r, "/refuses", route, &runs, func(ctx context.Context, tx pgx.Tx) error {
				if err := execute(c.violate)(ctx, tx); err != nil {
					panic(err)
				}
				return context.Canceled
			})
			r.serve()
			for _, path := range []string{"/x", "/x", "/keeps"} {
				r.want(r.send(post(path, "k", "{}")), 500, "not-applied")
				r.want(r.send(post(path, "", "{}")), 500, "not-applied") // unguarded
				r.wantFree()
				r.wantRows("select count(*) from orders", 0)
			}
			if n := runs.Load(); n != 6 {
				t.Errorf("the handler ran %d times, want once for each request", n)
			}
			r.want(r.send(post("/refuses", "refused", "{}")), 409, "") // its rows are gone before COMMIT
			r.wantState("refused", "answered")
			if _, err := r.pool.Exec(t.Context(), c.repair); err != nil {
				t.Fatal(err)
			}
			r.want(r.send(post("/x", "k", "{}")), 201, "")
			r.wantRows("select count(*) from orders", 1)
		})
	}
}
