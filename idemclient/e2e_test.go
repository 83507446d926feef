package idemclient_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemclient"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// guarded is a real guard on a database of its own, behind a network that the
// test makes.
type guarded struct {
	*httptest.Server
	t    testing.TB
	pool *pgxpool.Pool
	runs atomic.Int64
	hold chan struct{} // the handler waits for it, if there is one
}

func newGuarded(t testing.TB, config idemhttp.Config, route idemhttp.Route, network func(http.Handler) http.Handler) *guarded {
	t.Helper()
	g := &guarded{t: t, pool: pgtest.New(t)}
	if _, err := g.pool.Exec(t.Context(), "create table orders (id int generated always as identity, item text)"); err != nil {
		t.Fatal(err)
	}
	db, err := idem.Open(t.Context(), g.pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	config.Scope = idemhttp.Public()
	guard, err := idemhttp.New(db, config)
	if err != nil {
		t.Fatal(err)
	}
	route.Name = "POST /orders"
	handler := guard.Route(route)(http.HandlerFunc(g.order))
	if network != nil {
		handler = network(handler)
	}
	g.Server = httptest.NewUnstartedServer(handler)
	g.Config.ErrorLog = discard
	g.Start()
	t.Cleanup(g.Close)
	return g
}

func (g *guarded) order(w http.ResponseWriter, r *http.Request) {
	g.runs.Add(1)
	if g.hold != nil {
		<-g.hold
	}
	item := make([]byte, r.ContentLength)
	_, _ = r.Body.Read(item)
	var id int
	err := idem.Tx(r.Context()).QueryRow(r.Context(), "insert into orders (item) values ($1) returning id", string(item)).Scan(&id)
	if err != nil {
		http.Error(w, "database", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d: %s", id, item)
}

func (g *guarded) wantOrders(want int) {
	g.t.Helper()
	var got, keys int
	err := g.pool.QueryRow(context.Background(),
		"select (select count(*) from orders), (select count(*) from idem.idempotency_keys)").Scan(&got, &keys)
	if err != nil || got != want || keys != want {
		g.t.Errorf("got %d orders under %d keys (%v), want %d", got, keys, err, want)
	}
}

// bad is a network that loses requests and answers, and halves answers, by turns
// of a random kind.
func bad(lost *atomic.Int64) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch rand.IntN(5) {
			case 0: // before anything is done
				lost.Add(1)
				panic(http.ErrAbortHandler)
			case 1: // after all of it is done
				h.ServeHTTP(httptest.NewRecorder(), r)
				lost.Add(1)
				panic(http.ErrAbortHandler)
			case 2: // half of the answer
				answered := httptest.NewRecorder()
				h.ServeHTTP(answered, r)
				lost.Add(1)
				w.Header().Set("Content-Length", fmt.Sprint(answered.Body.Len()))
				w.WriteHeader(answered.Code)
				_, _ = w.Write(answered.Body.Bytes()[:answered.Body.Len()/2])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			case 3: // a gateway speaks instead
				h.ServeHTTP(httptest.NewRecorder(), r)
				lost.Add(1)
				w.WriteHeader(http.StatusBadGateway)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}
}

func TestEndToEnd_oneOrderPerIntentOnABadNetwork(t *testing.T) {
	var lost atomic.Int64
	g := newGuarded(t, idemhttp.Config{}, idemhttp.Route{}, bad(&lost))
	client := newClient(t, idemclient.Config{Store: openStore(t, t.TempDir()), Attempts: 200})
	const intents, senders = 20, 4
	answers := make([][senders]string, intents)
	var all sync.WaitGroup
	for i := range intents {
		for j := range senders { // several of one program's goroutines want the same
			all.Go(func() {
				ctx := idemclient.WithIntent(t.Context(), fmt.Sprint("order:", i))
				resp, body, err := post(ctx, client, g.URL, fmt.Sprint("item ", i))
				if err != nil || resp.StatusCode != 201 {
					t.Errorf("intent %d: got %v %q %v", i, resp, body, err)
				}
				answers[i][j] = body
			})
		}
	}
	all.Wait()
	for i, got := range answers {
		for _, body := range got {
			if body != got[0] || !strings.HasSuffix(body, fmt.Sprint(": item ", i)) {
				t.Errorf("intent %d got the answers %q, want one", i, got)
			}
		}
	}
	g.wantOrders(intents)
	if lost.Load() < intents {
		t.Errorf("the network lost %d messages; that proves nothing", lost.Load())
	}
}

func TestEndToEnd_waitsForTheFirstInEveryProfile(t *testing.T) {
	for name, c := range map[string]struct {
		profile idemhttp.Profile
		route   idemhttp.Route
	}{
		"425": {idemhttp.Article, idemhttp.Route{Wait: -1}},
		"409": {idemhttp.IETF, idemhttp.Route{Wait: -1}},
		"202": {idemhttp.Article, idemhttp.Route{Wait: -1, InFlight202: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waiting := make(chan struct{})
			var once sync.Once
			g := newGuarded(t, idemhttp.Config{Profile: c.profile}, c.route, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(w, r)
					once.Do(func() { close(waiting) }) // the first that is answered is told that it is in flight
				})
			})
			g.hold = make(chan struct{})
			client := newClient(t, idemclient.Config{Store: &idemclient.Memory{}})
			ctx := idemclient.WithIntent(t.Context(), "order:1")
			var all sync.WaitGroup
			var bodies [2]string
			for i := range bodies {
				all.Go(func() {
					if resp, body, err := post(ctx, client, g.URL, "tea"); err != nil || resp.StatusCode != 201 {
						t.Errorf("got %v %v", resp, err)
					} else {
						bodies[i] = body
					}
				})
			}
			select {
			case <-waiting:
			case <-time.After(30 * time.Second):
				t.Error("nobody was told that the first is in flight")
			}
			close(g.hold)
			all.Wait()
			if bodies[0] != "order 1: tea" || bodies[1] != bodies[0] || g.runs.Load() != 1 {
				t.Errorf("got %q after %d runs, want one order", bodies, g.runs.Load())
			}
			g.wantOrders(1)
		})
	}
}

func TestEndToEnd_mismatchIsHandedOver(t *testing.T) {
	g := newGuarded(t, idemhttp.Config{}, idemhttp.Route{}, nil)
	store := &idemclient.Memory{}
	client := newClient(t, idemclient.Config{Store: store})
	ctx := idemclient.WithIntent(t.Context(), "order:1")
	mustPost(ctx, t, client, g.URL, "tea", 201)
	req, _ := http.NewRequestWithContext(ctx, "POST", g.URL, strings.NewReader("milk"))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	p, ok := idemclient.ProblemFrom(resp)
	if !ok || p.Code != "key-mismatch" || p.Status != 409 || p.Retryable || p.SafeNewKey || p.Title == "" || p.Detail == "" {
		t.Errorf("got %+v, want a mismatch after which a new key is not safe", p)
	}
	if sent, _ := idemclient.SentFrom(resp); sent.Attempts != 1 || sent.Stopped != nil {
		t.Errorf("got %+v, want one attempt", sent)
	}
	g.wantOrders(1)
}

func TestEndToEnd_quotedAndBareAreOneKey(t *testing.T) {
	g := newGuarded(t, idemhttp.Config{}, idemhttp.Route{}, nil)
	for _, key := range []string{"downstream-7", `odd"\,7`} {
		ctx := idemclient.WithKey(t.Context(), key)
		_, first := mustPost(ctx, t, newClient(t, idemclient.Config{}), g.URL, "tea", 201)
		resp, second := mustPost(ctx, t, newClient(t, idemclient.Config{Quoted: true}), g.URL, "tea", 201)
		if first != second || resp.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got %q and %q, want a replay", key, first, second)
		}
	}
	g.wantOrders(2)
}

// Go's transport sends a request again by itself when its connection was used
// before and breaks: the guard sees a duplicate, and replays.
func TestEndToEnd_goTransportsOwnRepeatDoesNoHarm(t *testing.T) {
	var sends, connections atomic.Int64
	g := newGuarded(t, idemhttp.Config{}, idemhttp.Route{}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sends.Add(1) == 2 { // done, and the answer is lost
				h.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	})
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	client := newClient(t, idemclient.Config{Base: transport, Attempts: 1})
	mustPost(t.Context(), t, client, g.URL, "tea", 201)
	resp, body := mustPost(t.Context(), t, client, g.URL, "milk", 201)
	if sends.Load() != 3 || connections.Load() != 2 {
		t.Fatalf("%d requests on %d connections, want a repeat by Go's transport", sends.Load(), connections.Load())
	}
	if body != "order 2: milk" || resp.Header.Get("Idempotent-Replayed") != "true" || g.runs.Load() != 2 {
		t.Errorf("got %q after %d runs, want a replay", body, g.runs.Load())
	}
	g.wantOrders(2)
}

// A database that takes no writes makes the client wait for it, with the same key.
func TestEndToEnd_unavailableIsAskedAgain(t *testing.T) {
	var g *guarded
	var sends atomic.Int64
	var saw sync.Map
	g = newGuarded(t, idemhttp.Config{}, idemhttp.Route{}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			saw.Store(r.Header.Get(header), true)
			if sends.Add(1) == 2 {
				g.readOnly("off")
			}
			h.ServeHTTP(w, r)
		})
	})
	g.readOnly("on")
	client := newClient(t, idemclient.Config{})
	resp, body := mustPost(t.Context(), t, client, g.URL, "tea", 201)
	keys := 0
	saw.Range(func(any, any) bool { keys++; return true })
	if sent, _ := idemclient.SentFrom(resp); sent.Attempts != 2 || body != "order 1: tea" || keys != 1 {
		t.Errorf("got %q after %+v with %d keys, want one order on the second attempt", body, sent, keys)
	}
	g.wantOrders(1)
}

// readOnly makes every new session of the database read-only, as a primary is
// that has become a standby, or takes that back.
func (g *guarded) readOnly(on string) {
	ctx := context.Background()
	conn, err := g.pool.Acquire(ctx)
	if err != nil {
		g.t.Error(err)
		return
	}
	for _, statement := range []string{
		"set default_transaction_read_only = off",
		"do $$ begin execute format('alter database %I set default_transaction_read_only = " + on + "', current_database()); end $$",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			g.t.Error(err)
		}
	}
	conn.Release()
	g.pool.Reset()
}
