package idemhttp_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// names are scopes and keys that run into each other at other boundaries, in
// other cases and in other spellings: what one principal guesses of another.
var names = []string{"a", "b", "ab", "ba", "aa", "bb", "aab", "abb", "A", "AB", "a:b", "a/b", "a|b", "a.b", "a-b", "a%20b",
	"1:a", "1:b", "2:ab", "a'b", "a;b", "$1", "*", "%", "_", "a_", "a%", "null", "NULL", "public"}

// pair is one principal's key and what is known of it.
type pair struct {
	scope, key string
	mu         sync.Mutex // one request of a pair at a time, so that its end is known
	first      string     // the body that it was first used with
	answer     string
}

// Ten thousand requests with keys that others use, or nearly: none gets another's
// answer, and none is refused or made to wait for what another has done.
func TestS6_tenThousandProbesAcrossScopesFindNothing(t *testing.T) {
	r := newRig(t)
	r.handle("/probe", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		said, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, "body", http.StatusInternalServerError)
			return
		}
		var id int64
		err = idem.Tx(req.Context()).QueryRow(req.Context(),
			"insert into orders (customer, amount) values (1, 1) returning id").Scan(&id)
		if err != nil {
			http.Error(w, "database", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "order %d of %q: %s", id, req.Header.Get("Authorization"), said)
	})
	r.serve()

	var pairs []*pair
	for _, scope := range names {
		for _, key := range names {
			pairs = append(pairs, &pair{scope: scope, key: key})
		}
	}
	const probes, probers = 10_000, 16
	var sent, foreign, influenced atomic.Int64
	var all sync.WaitGroup
	for prober := range probers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(20261130, uint64(prober)))
			for sent.Add(1) <= probes {
				p := pairs[random.IntN(len(pairs))]
				said := fmt.Sprintf(`{"amount":%d}`, random.IntN(2))
				p.probe(t, r, said, &foreign, &influenced)
			}
		})
	}
	all.Wait()
	used := 0
	for _, p := range pairs {
		if p.first != "" {
			used++
		}
	}
	t.Logf("%d probes over %d scopes and %d keys: %d answers of others, %d influenced", probes, len(names), len(names), foreign.Load(), influenced.Load())
	if foreign.Load() != 0 || influenced.Load() != 0 {
		t.Errorf("got %d answers of others and %d influenced requests, want none", foreign.Load(), influenced.Load())
	}
	r.wantRows("select count(*) from orders", used)
	r.wantRows("select count(*) from idem.idempotency_keys", used)
}

// probe sends one request of the pair and compares it with what the pair alone
// has done before.
func (p *pair) probe(t *testing.T, r *rig, said string, foreign, influenced *atomic.Int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := r.send(post("/probe", p.key, said).as(p.scope))
	if got.err != nil {
		t.Errorf("%q %q: %v", p.scope, p.key, got.err)
		return
	}
	switch {
	case p.first == "":
		p.first, p.answer = said, got.body
		if got.status != 200 || got.replayed() {
			influenced.Add(1)
			t.Errorf("the first use of %q by %q got %d %s", p.key, p.scope, got.status, got.body)
		}
	case p.first == said && (got.status != 200 || !got.replayed() || got.body != p.answer):
		influenced.Add(1)
		t.Errorf("a repeat of %q by %q got %d %s, want %s", p.key, p.scope, got.status, got.body, p.answer)
	case p.first != said && got.problem() != "key-mismatch":
		influenced.Add(1)
		t.Errorf("another use of %q by %q got %d %s", p.key, p.scope, got.status, got.body)
	}
	var id int64
	var of, body string
	if got.status == 200 {
		if _, err := fmt.Sscanf(got.body, "order %d of %q: %s", &id, &of, &body); err != nil || of != p.scope || body != p.first {
			foreign.Add(1)
			t.Errorf("%q got an answer of %q: %s", p.scope, of, got.body)
		}
	}
}
