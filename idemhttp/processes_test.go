package idemhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// twoProcesses are two guards on two pools: for each other they are what two
// processes are, since all that they share is the database.
func twoProcesses(t *testing.T, route idemhttp.Route) (a, b *slow) {
	url := pgtest.NewURL(t)
	a, b = newSlow(rigOn(t, pgtest.Pool(t, url)), route), newSlow(rigOn(t, pgtest.Pool(t, url)), route)
	return a, b
}

func TestC8_noIsolationLevelMakesALostRaceAnError(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			url := pgtest.NewURL(t)
			rigs := []*rig{rigOn(t, pgtest.Pool(t, url)), rigOn(t, pgtest.Pool(t, url))}
			var runs atomic.Int64
			for _, r := range rigs {
				r.handle("/x", idemhttp.Route{TxOptions: pgx.TxOptions{IsoLevel: level}, Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
					run := runs.Add(1)
					if err := insertOrder(req); err != nil {
						http.Error(w, err.Error(), http.StatusConflict)
						return
					}
					w.WriteHeader(http.StatusCreated)
					_, _ = io.WriteString(w, fmt.Sprint("run ", run))
				})
				r.serve()
			}
			const rounds = 60
			for round := range rounds {
				race(t, rigs, fmt.Sprint("k", round))
			}
			rigs[0].wantRows("select count(*) from idem.idempotency_keys", rounds)
			rigs[0].wantRows("select count(*) from orders", rounds)
			if n := runs.Load(); n != rounds && advisoryLocks && !rigs[0].lazy && level != pgx.Serializable { // which may refuse anything once
				t.Errorf("the handlers ran %d times, want %d: not a line for a key that has an answer", n, rounds)
			}
		})
	}
}

// race sends one request four times at once, two to each process.
func race(t *testing.T, rigs []*rig, key string) {
	t.Helper()
	var replies [4]reply
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = rigs[i%2].sendContext(context.Background(), post("/x", key, "{}")) })
	}
	all.Wait()
	for _, got := range replies {
		if got.err != nil || got.status != 201 || got.body != replies[0].body {
			t.Fatalf("%s: got %d %q %v, another %d %q", key, got.status, got.body, got.err, replies[0].status, replies[0].body)
		}
	}
}
