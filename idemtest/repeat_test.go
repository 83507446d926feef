package idemtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/idemtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// repeating repeats an order at handler, made on a database of its own.
func repeating(t testing.TB, route idemhttp.Route, handler func(*pgxpool.Pool) http.HandlerFunc, around func(http.Handler) http.Handler) idemtest.Answer {
	t.Helper()
	h, err := guarded(route, handler)(t.Context(), idemtest.New(t, tables).Pool())
	if err != nil {
		t.Fatalf("%v", err)
	}
	if around != nil {
		h = around(h)
	}
	return idemtest.Repeat(t, h, order, 8)
}

func TestRepeat_returnsTheOneAnswer(t *testing.T) {
	t.Parallel()
	a := repeating(t, idemhttp.Route{}, good, nil)
	if a.Status != 201 || a.Replayed() || a.Header.Get("Location") != "/orders/1" || string(a.Body) != `{"ID":1,"Amount":1500}`+"\n" {
		t.Errorf("got %v %v, want the first 201", a, a.Header)
	}
}

// told closes a channel when somebody has been told to come again.
type told struct {
	http.ResponseWriter
	once *sync.Once
	c    chan struct{}
}

func (w told) WriteHeader(status int) {
	if status == http.StatusTooEarly {
		w.once.Do(func() { close(w.c) })
	}
	w.ResponseWriter.WriteHeader(status)
}

func TestRepeat_comesAgainWhileTheFirstIsRunning(t *testing.T) {
	t.Parallel()
	again, once := make(chan struct{}), &sync.Once{}
	slow := func(pool *pgxpool.Pool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-again:
			case <-r.Context().Done():
			}
			good(pool)(w, r)
		}
	}
	repeating(t, idemhttp.Route{Wait: -1}, slow, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(told{w, once, again}, r) })
	})
}

func TestRepeat_catchesARouteWithoutAGuard(t *testing.T) {
	t.Parallel()
	db := idemtest.New(t, tables)
	wantFailure(t, record(t, func(t testing.TB) {
		idemtest.Repeat(t, outside(db.Pool()), order, 8)
	}), "8 of 8 answers do not say Idempotent-Replayed: true", "Is the route guarded")
}

func TestRepeat_catchesAMethodThatIsNotGuarded(t *testing.T) {
	t.Parallel()
	put := func() *http.Request { r := order(); r.Method = http.MethodPut; return r }
	wantFailure(t, record(t, func(t testing.TB) {
		h, err := guarded(idemhttp.Route{}, outside)(t.Context(), idemtest.New(t, tables).Pool())
		if err != nil {
			t.Fatalf("%v", err)
		}
		idemtest.Repeat(t, h, put, 8)
	}), "8 of 8 answers", "and its method")
}

// stamped changes every answer, outside of the guard.
func stamped(change func(w http.ResponseWriter, n int64)) func(http.Handler) http.Handler {
	var answers atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			change(w, answers.Add(1))
		})
	}
}

func TestRepeat_catchesABodyThatDiffers(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		repeating(t, idemhttp.Route{}, good, stamped(func(w http.ResponseWriter, n int64) { fmt.Fprint(w, n) }))
	}), "a repeat got another answer: body", `{\"ID\":1,\"Amount\":1500}\n`)
}

// answers is a handler that claims to replay, and does not.
func answers(differ func(w http.ResponseWriter, n int64)) http.Handler {
	var runs atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := runs.Add(1)
		if n > 1 {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		differ(w, n)
	})
}

func TestRepeat_catchesAStatusOrAHeaderThatDiffers(t *testing.T) {
	t.Parallel()
	for word, differ := range map[string]func(w http.ResponseWriter, n int64){
		"status 201 and 202": func(w http.ResponseWriter, n int64) { w.WriteHeader(200 + int(min(n, 2))) },
		`header Etag ["1"]`:  func(w http.ResponseWriter, n int64) { w.Header().Set("ETag", fmt.Sprint(n)) },
	} {
		wantFailure(t, record(t, func(t testing.TB) { idemtest.Repeat(t, answers(differ), order, 3) }), "a repeat got another answer", word)
	}
}

func TestRepeat_doesNotMindHeadersThatAreNotReplayed(t *testing.T) {
	t.Parallel()
	idemtest.Repeat(t, answers(func(w http.ResponseWriter, n int64) { w.Header().Set("Set-Cookie", fmt.Sprint("id=", n)) }), order, 3)
}

func TestRepeat_saysThatAnAnswerIsNotRemembered(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) {
		h, err := guarded(idemhttp.Route{}, good)(t.Context(), idemtest.New(t, tables).Pool())
		if err != nil {
			t.Fatalf("%v", err)
		}
		idemtest.Repeat(t, h, func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("no order"))
			r.Header.Set("Idempotency-Key", "k")
			return r
		}, 4)
	}), "status 422 is remembered only if the route's policy says so")
}

func TestRepeat_saysWhatIsWrongWithTheRequest(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	same := order()
	for name, c := range map[string]struct {
		request func() *http.Request
		words   []string
	}{
		"a new key each time":      {func() *http.Request { r := order(); r.Header.Set("Idempotency-Key", fmt.Sprint(n.Add(1))); return r }, []string{"two intents", `["1"] and ["2"]`}},
		"the same request":         {func() *http.Request { return same }, []string{"no new request"}},
		"no request":               {func() *http.Request { return nil }, []string{"no new request"}},
		"no key":                   {func() *http.Request { r := order(); r.Header.Del("Idempotency-Key"); return r }, []string{"key-missing"}},
		"a key that is used":       {order, []string{"all 4 answers are replays", "the key was used before"}},
		"a request never answered": {func() *http.Request { r := order(); r.URL.Path = "/panic"; return r }, []string{"no answer", "panic"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := guarded(idemhttp.Route{}, good)(t.Context(), idemtest.New(t, tables).Pool())
			if err != nil {
				t.Fatal(err)
			}
			if name == "a key that is used" {
				idemtest.Repeat(t, h, order, 2)
			}
			failing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/panic" {
					panic(http.ErrAbortHandler)
				}
				h.ServeHTTP(w, r)
			})
			wantFailure(t, record(t, func(t testing.TB) { idemtest.Repeat(t, failing, c.request, 4) }), c.words...)
		})
	}
}

func TestRepeat_refusesToRepeatOnce(t *testing.T) {
	t.Parallel()
	wantFailure(t, record(t, func(t testing.TB) { idemtest.Repeat(t, answers(func(http.ResponseWriter, int64) {}), order, 1) }), "needs n from 2 to 1000, got 1")
}
