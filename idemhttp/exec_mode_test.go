package idemhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// execModes are what a program may put into its pool's URL, for PgBouncer.
var execModes = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}

func TestExecModes_everyOutcomeIsTheSameInAll(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := rigOn(t, pgtest.Pool(t, pgtest.Direct(t, pgtest.NewURL(t))+"&default_query_exec_mode="+mode))
			if got := r.pool.Config().ConnConfig.DefaultQueryExecMode.String(); got != strings.ReplaceAll(mode, "_", " ") {
				t.Fatalf("the pool's mode is %q, want %q", got, mode)
			}
			r.handle("/x", idemhttp.Route{KeyOptional: true, Tombstone: time.Hour}, takeSlot)
			r.handle("/serializable", idemhttp.Route{TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}}, takeSlot)
			r.handle("/large", idemhttp.Route{MaxStored: 1}, takeSlot)
			r.handle("/resource", idemhttp.Route{Replay: idemhttp.ReplayResource, Fetch: func(w http.ResponseWriter, _ *http.Request, ref string) {
				_, _ = io.WriteString(w, "fetched "+ref)
			}}, func(w http.ResponseWriter, req *http.Request) {
				idem.Reference(req.Context(), `a'b\c`)
				w.WriteHeader(201)
			})
			r.handle("/commits", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				_ = execute("commit")(req.Context(), idem.Tx(req.Context()))
				w.WriteHeader(201)
			})
			r.serve()
			for round := range 2 { // statements are prepared in the first
				wantEveryOutcome(r, round)
			}
			if n := r.pool.Stat().AcquiredConns(); n != 0 {
				t.Errorf("%d connections are still held", n)
			}
		})
	}
}

// takeSlot inserts with arguments and turns a taken slot into a refusal, in a
// transaction that is aborted by then. Its answer has every byte that an escape
// could lose.
func takeSlot(w http.ResponseWriter, req *http.Request) {
	_, err := idem.Tx(req.Context()).Exec(req.Context(), "insert into orders (customer, amount, slot) values ($1, $2, $3)", 1, 2, req.URL.Query().Get("slot"))
	if fail409(w, err) {
		return
	}
	w.Header().Add("Link", `b"\{},NULL`)
	w.Header().Set("Content-Disposition", `x\x00'y`)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte{0, 1, 255, '\'', '\\', '"'})
}

// wantEveryOutcome sends requests that end in each way, in order.
func wantEveryOutcome(r *rig, round int) {
	r.t.Helper()
	for _, c := range []struct {
		path, key string
		status    int
		problem   string
		replayed  bool
	}{
		{"/x?slot=a", "k'1", 201, "", false}, {"/x?slot=a", "k'1", 201, "", true},
		{"/x?slot=a", "refused", 409, "", false}, {"/x?slot=a", "refused", 409, "", true},
		{"/x?slot=b", "k'1", 409, "key-mismatch", false},
		{"/serializable?slot=c", "s1", 201, "", false}, {"/serializable?slot=c", "s1", 201, "", true},
		{"/serializable?slot=c", "s2", 409, "", false}, {"/serializable?slot=c", "s2", 409, "", true},
		{"/large?slot=d", "large", 201, "", false}, {"/large?slot=d", "large", 409, "answer-withheld", false},
		{"/resource", "ref", 201, "", false}, {"/resource", "ref", 201, "", true},
		{"/commits", "unknown", 409, "outcome-unknown", false}, {"/commits", "unknown", 409, "outcome-unknown", false},
		{"/x?slot=e", "", 201, "", false}, {"/x?slot=e", "", 409, "", false},
	} {
		key := c.key
		if key != "" {
			key = fmt.Sprint(key, "-", round)
		}
		path := c.path
		if path != "/resource" && path != "/commits" {
			path += fmt.Sprint(round)
		}
		got := r.send(post(path, key, "{}"))
		if got.status != c.status || got.problem() != c.problem || got.replayed() != c.replayed {
			r.t.Errorf("%s with key %q got %d %q, replayed %v, %q; want %d %q, %v", path, key, got.status, got.problem(), got.replayed(), got.body, c.status, c.problem, c.replayed)
		}
		if path == "/resource" && got.replayed() && got.body != `fetched a'b\c` {
			r.t.Errorf("the reference came back as %q", got.body)
		}
		if c.status == 201 && c.replayed && path != "/resource" && (got.body != "\x00\x01\xff'\\\"" || got.header.Get("Link") != `b"\{},NULL` || got.header.Get("Content-Disposition") != `x\x00'y`) {
			r.t.Errorf("%s was replayed as %q %v", path, got.body, got.header)
		}
	}
	_, err := r.pool.Exec(r.t.Context(), `update idem.idempotency_keys set created_at = created_at - interval '1 day',
		expires_at = now() - interval '1 minute' where key like 'k''1-%'`)
	if err != nil {
		r.t.Fatal(err)
	}
	r.want(r.send(post(fmt.Sprint("/x?slot=a", round), fmt.Sprint("k'1-", round), "{}")), 409, "answer-expired")
}
