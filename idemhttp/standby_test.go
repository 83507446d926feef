package idemhttp_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The server waits for a standby that never comes, as for one that has gone.
func TestD9_commitThatNoStandbyConfirmsIsNotAnswered201(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServer(t, nil)
	config, err := pgxpool.ParseConfig(s.url())
	if err != nil {
		t.Fatal(err)
	}
	idem.Prepare(config)
	r := rigOn(t, pgtest.PoolWith(t, config))
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	s.must("alter system set synchronous_standby_names = 'nobody'", "select pg_reload_conf()")
	bare := pgtest.Pool(t, s.url())
	eventually(t, "a pool that is not prepared is refused", func() bool {
		_, err := idem.Open(t.Context(), bare, idem.Config{})
		return errors.Is(err, idem.ErrNotPrepared)
	})
	if _, err := idem.Open(t.Context(), r.pool, idem.Config{}); err != nil {
		t.Errorf("with Prepare: %v", err)
	}
	cancelled := r.begin(post("/orders", "cancelled", body))
	eventually(t, "COMMIT's wait is cancelled", func() bool {
		var n int
		err := r.pool.QueryRow(t.Context(), `select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'`).Scan(&n)
		return err == nil && n > 0
	})
	// Nobody cancels this one's, until the guard's own limits are over.
	waited := r.begin(post("/orders", "waited", body))
	for key, answer := range map[string]<-chan reply{"cancelled": cancelled, "waited": waited} {
		got := <-answer
		if got.status != 503 || got.problem() != "unavailable" || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: an order that no standby has confirmed was answered %d %q %s", key, got.status, got.problem(), got.body)
		}
	}
	r.wantRows("select count(*) from orders", 2) // they are there, and may be lost by a failover
	s.must("alter system reset synchronous_standby_names", "select pg_reload_conf()")
	for _, key := range []string{"cancelled", "waited"} {
		if got := r.send(post("/orders", key, body)); got.status != 201 || !got.replayed() {
			t.Errorf("%s: the retry got %d, replayed %v", key, got.status, got.replayed())
		}
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("the handlers ran %d times, want once for each key", n)
	}
}
