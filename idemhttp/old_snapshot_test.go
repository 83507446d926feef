//go:build !idem_nolocks

package idemhttp_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// slowLock stands before PostgreSQL's own function in the path of a session: its
// claim stops at the gate, between its snapshot and its lock.
const slowLock = `create schema slow;
	create function slow.pg_try_advisory_xact_lock_shared(k bigint) returns boolean language plpgsql as $$ begin
		perform pg_advisory_xact_lock_shared(4711);
		return pg_catalog.pg_try_advisory_xact_lock_shared(k);
	end $$`

// An answer that is committed between a claim's snapshot and its lock cannot be
// read, and still not a line of the handler runs.
func TestC8_answerThatTheSnapshotIsTooOldToSeeIsReplayed(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			url := pgtest.Direct(t, pgtest.NewURL(t))
			var runs atomic.Int64
			serve := func(url string) *rig {
				r := rigOn(t, pgtest.Pool(t, url))
				r.handle("/x", idemhttp.Route{TxOptions: pgx.TxOptions{IsoLevel: level}, Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
					runs.Add(1)
					if err := insertOrder(req); err != nil {
						panic(err)
					}
					w.WriteHeader(http.StatusCreated)
					_, _ = io.WriteString(w, "the first one's")
				})
				r.serve()
				return r
			}
			fast := serve(url)
			if _, err := fast.pool.Exec(t.Context(), slowLock); err != nil {
				t.Fatal(err)
			}
			slow := serve(url + "&search_path=slow,pg_catalog,public")
			gate, err := fast.pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer gate.Release()
			if _, err := gate.Exec(t.Context(), "select pg_advisory_lock(4711)"); err != nil {
				t.Fatal(err)
			}
			late := slow.begin(post("/x", "k", "{}"))
			eventually(t, "the claim is between its snapshot and its lock", func() bool {
				var waits bool
				err := fast.pool.QueryRow(t.Context(), "select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))").Scan(&waits)
				return err == nil && waits
			})
			fast.want(fast.send(post("/x", "k", "{}")), 201, "")
			if _, err := gate.Exec(t.Context(), "select pg_advisory_unlock(4711)"); err != nil {
				t.Fatal(err)
			}
			if got := <-late; got.status != 201 || !got.replayed() || got.body != "the first one's" {
				t.Errorf("got %d %q, replayed %v, want the answer of the first", got.status, got.body, got.replayed())
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("the handlers ran %d times, want once", n)
			}
			fast.wantRows("select count(*) from orders", 1)
		})
	}
}
