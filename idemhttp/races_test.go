package idemhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

// racers are two processes whose handler writes an order and answers its body.
func racers(t *testing.T, route idemhttp.Route) []*rig {
	url := pgtest.NewURL(t)
	rigs := []*rig{rigOn(t, pgtest.Pool(t, url)), rigOn(t, pgtest.Pool(t, url))}
	for _, r := range rigs {
		r.handle("/x", route, func(w http.ResponseWriter, req *http.Request) {
			said, _ := io.ReadAll(req.Body)
			if fail409(w, insertOrder(req)) {
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(said)
		})
		r.serve()
	}
	return rigs
}

// raced sends bodies under one key at once, in turn to one process and the other.
func raced(rigs []*rig, key string, bodies ...string) []reply {
	replies := make([]reply, len(bodies))
	var all sync.WaitGroup
	for i, b := range bodies {
		all.Go(func() { replies[i] = rigs[i%len(rigs)].send(post("/x", key, b)) })
	}
	all.Wait()
	return replies
}

const raceRounds = 500

// TestC6_C7_whoseRequestHasTheKeyIsNeverToldAMismatch races two bodies in two
// processes: one of them gets the key, for all that send it, and the other is a
// mismatch for all that send that.
func TestC6_C7_whoseRequestHasTheKeyIsNeverToldAMismatch(t *testing.T) {
	for name, route := range map[string]idemhttp.Route{"default": {}, "lazy": {LazyClaim: true}} {
		t.Run(name, func(t *testing.T) {
			rigs := racers(t, route)
			wins := map[string]int{}
			for round := range raceRounds {
				bodies := []string{"one", "other"}
				if advisoryLocks && round%2 == 0 {
					// Without locks a process cannot know that its request has the key.
					bodies = []string{"one", "other", "other", "one"} // both in each process
				}
				replies := raced(rigs, fmt.Sprint("k", round), bodies...)
				winner := ""
				for _, got := range replies {
					if got.status == 201 {
						winner = got.body
					}
				}
				for i, got := range replies {
					won := got.status == 201 && got.body == bodies[i]
					lost := got.status == 409 && got.problem() == "key-mismatch"
					if own := bodies[i] == winner; own && !won || !own && !lost || winner == "" {
						t.Fatalf("round %d: %q got %d %q %v; %q won", round, bodies[i], got.status, got.body, got.err, winner)
					}
				}
				wins[winner]++
			}
			rigs[0].wantRows("select count(*) from orders", raceRounds)
			t.Logf("of %d rounds: %v", raceRounds, wins)
		})
	}
}

// TestC7_equalBodiesAreNeverAMismatch is the same race between equals.
func TestC7_equalBodiesAreNeverAMismatch(t *testing.T) {
	rigs := racers(t, idemhttp.Route{})
	for round := range raceRounds {
		for _, got := range raced(rigs, fmt.Sprint("k", round), "same", "same") {
			if got.status != 201 || got.body != "same" {
				t.Fatalf("round %d: got %d %q %v", round, got.status, got.body, got.err)
			}
		}
	}
	rigs[0].wantRows("select count(*) from orders", raceRounds)
}
