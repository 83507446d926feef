package idemclient_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/idemclient"
)

func TestTransport_mintsOneKeyPerRequest(t *testing.T) {
	s := newServer(t, answer(201, "made"))
	client := newClient(t, idemclient.Config{})
	first, _ := mustPost(t.Context(), t, client, s.URL, "a", 201)
	mustPost(t.Context(), t, client, s.URL, "a", 201)
	got := s.got()
	if got[0].key == got[1].key {
		t.Errorf("two requests without a name share the key %q", got[0].key)
	}
	for _, a := range got {
		id, err := uuid.Parse(a.key)
		if err != nil || id.Version() != 7 {
			t.Errorf("the key is %q, want a UUIDv7 (%v)", a.key, err)
		}
	}
	sent, ok := idemclient.SentFrom(first)
	if want := (idemclient.Sent{Key: got[0].key, Attempts: 1}); !ok || sent != want {
		t.Errorf("got %+v %v, want %+v", sent, ok, want)
	}
}

func TestTransport_givesKeysToListedMethodsOnly(t *testing.T) {
	for _, c := range []struct {
		method  string
		methods []string
		want    bool
	}{
		{"GET", nil, false}, {"HEAD", nil, false}, {"PUT", nil, false}, {"DELETE", nil, false},
		{"POST", nil, true}, {"PATCH", nil, true},
		{"PUT", []string{"POST", "PUT"}, true}, {"PATCH", []string{"POST", "PUT"}, false},
	} {
		s := newServer(t, answer(503, ""), answer(200, ""))
		client := newClient(t, idemclient.Config{Methods: c.methods})
		req, _ := http.NewRequestWithContext(t.Context(), c.method, s.URL, nil)
		if _, _, err := do(client, req); err != nil {
			t.Fatal(err)
		}
		got := s.got()
		if repeated := len(got) == 2; (got[0].keys == 1) != c.want || repeated != c.want {
			t.Errorf("%s with %v: got %+v, want a key and a repeat: %v", c.method, c.methods, got, c.want)
		}
	}
}

func TestTransport_keepsTheRequestsOwnKeyAndTheRequest(t *testing.T) {
	s := newServer(t, answer(503, ""), answer(200, ""))
	client := newClient(t, idemclient.Config{Store: &idemclient.Memory{}})
	ctx := idemclient.WithKey(idemclient.WithIntent(t.Context(), "order:1"), "downstream")
	req, _ := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader("b"))
	req.Header.Set(header, "mine")
	before := req.Clone(ctx)
	if _, _, err := do(client, req); err != nil {
		t.Fatal(err)
	}
	if key := s.wantSame(t, 2, "b"); key != "mine" {
		t.Errorf("got the key %q, want the request's own", key)
	}
	if len(req.Header) != 1 || req.Header.Get(header) != "mine" || req.ContentLength != before.ContentLength || req.URL.String() != before.URL.String() {
		t.Errorf("the caller's request was changed: %+v", req)
	}
}

func TestTransport_doesNotAddTheKeyToTheCallersRequest(t *testing.T) {
	s := newServer(t, answer(200, ""))
	req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader("b"))
	if _, _, err := do(newClient(t, idemclient.Config{}), req); err != nil {
		t.Fatal(err)
	}
	if len(req.Header) != 0 {
		t.Errorf("the caller's header is %v, want it empty", req.Header)
	}
}

func TestTransport_namedIntentHasOneKey(t *testing.T) {
	s := newServer(t, answer(201, ""))
	store := &idemclient.Memory{}
	ctx := idemclient.WithIntent(t.Context(), "order:42:pay")
	var all sync.WaitGroup
	for range 4 { // transports of their own, as in several processes
		client := newClient(t, idemclient.Config{Store: store})
		for range 16 {
			all.Go(func() {
				if _, _, err := post(ctx, client, s.URL, "x"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	first := s.wantSame(t, 64, "x")

	mustPost(idemclient.WithIntent(t.Context(), "order:43:pay"), t, newClient(t, idemclient.Config{Store: store}), s.URL, "x", 201)
	if err := store.Forget(t.Context(), "order:42:pay"); err != nil {
		t.Fatal(err)
	}
	mustPost(ctx, t, newClient(t, idemclient.Config{Store: store}), s.URL, "x", 201)
	got := s.got()[64:]
	if got[0].key == first || got[1].key == first || got[0].key == got[1].key {
		t.Errorf("another intent and a forgotten one got %+v, want keys of their own beside %q", got, first)
	}
}

func TestWithKey_winsOverTheIntentAndIsSentAsItIs(t *testing.T) {
	for _, c := range []struct {
		key, want string
		quoted    bool
	}{
		{"downstream", "downstream", false},
		{"downstream", `"downstream"`, true},
		{`a"b\c,d`, `"a\"b\\c,d"`, false},
	} {
		s := newServer(t, answer(200, ""))
		client := newClient(t, idemclient.Config{Quoted: c.quoted})
		ctx := idemclient.WithIntent(idemclient.WithKey(t.Context(), c.key), "order:1")
		mustPost(ctx, t, client, s.URL, "", 200)
		if got := s.wantSame(t, 1, ""); got != c.want {
			t.Errorf("the key %q travels as %q, want %q", c.key, got, c.want)
		}
	}
}

func mintedAt(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()
}

func TestTransport_refusesToSend(t *testing.T) {
	none := func(*http.Request) (*http.Response, error) {
		t.Error("something was sent")
		return nil, errors.New("no")
	}
	ctx := t.Context()
	aged := func(age time.Duration) *idemclient.Memory {
		m := &idemclient.Memory{}
		_, _ = m.Keep(ctx, "order:1", mintedAt(time.Now().Add(-age)))
		return m
	}
	broken := &idemclient.Memory{}
	_, _ = broken.Keep(ctx, "order:1", "not valid")
	named := idemclient.WithIntent(ctx, "order:1")
	for name, c := range map[string]struct {
		store   idemclient.Store
		request *http.Request
		want    error
	}{
		"a name without a store":  {nil, request(t, named), idemclient.ErrNoStore},
		"an empty name":           {&idemclient.Memory{}, request(t, idemclient.WithIntent(ctx, "")), idemclient.ErrIntentInvalid},
		"a long name":             {&idemclient.Memory{}, request(t, idemclient.WithIntent(ctx, strings.Repeat("n", 256))), idemclient.ErrIntentInvalid},
		"an empty key":            {nil, request(t, idemclient.WithKey(ctx, "")), idemclient.ErrKeyInvalid},
		"a key with a space":      {nil, request(t, idemclient.WithKey(ctx, "a b")), idemclient.ErrKeyInvalid},
		"a long key":              {nil, request(t, idemclient.WithKey(ctx, strings.Repeat("k", 256))), idemclient.ErrKeyInvalid},
		"an empty header":         {nil, request(t, ctx, ""), idemclient.ErrKeyInvalid},
		"two headers":             {nil, request(t, ctx, "a", "b"), idemclient.ErrKeyInvalid},
		"a store's invalid key":   {broken, request(t, named), idemclient.ErrKeyInvalid},
		"a key that is forgotten": {aged(72 * time.Hour), request(t, named), idemclient.ErrKeyTooOld},
	} {
		body := &closed{Reader: strings.NewReader("body")}
		c.request.Body = body
		resp, err := newTransport(t, idemclient.Config{Base: base(none), Store: c.store}).RoundTrip(c.request)
		var e *idemclient.Error
		if resp != nil || !errors.Is(err, c.want) || !errors.As(err, &e) || e.Attempts != 0 {
			t.Errorf("%s: got %v %v, want an *Error with %v", name, resp, err, c.want)
		}
		if body.times.Load() == 0 {
			t.Errorf("%s: the body was not closed", name)
		}
	}
	yes := base(func(*http.Request) (*http.Response, error) { return respond(200), nil })
	if _, err := newTransport(t, idemclient.Config{Base: yes, Store: aged(71 * time.Hour)}).RoundTrip(request(t, named)); err != nil {
		t.Errorf("a key of 71 h was refused: %v", err)
	}
}

func TestTransport_redirectKeepsTheKey(t *testing.T) {
	target := newServer(t, answer(503, ""), answer(201, "made"))
	s := newServer(t, answer(307, "", "Location", target.URL))
	mustPost(t.Context(), t, newClient(t, idemclient.Config{}), s.URL, "b", 201)
	if got, want := target.wantSame(t, 2, "b"), s.wantSame(t, 1, "b"); got != want {
		t.Errorf("the redirected request has the key %q, want the first one's %q", got, want)
	}
}

func TestTransport_seeOtherIsReadWithoutAKey(t *testing.T) {
	target := newServer(t, answer(200, "there"))
	s := newServer(t, answer(303, "", "Location", target.URL))
	mustPost(t.Context(), t, newClient(t, idemclient.Config{}), s.URL, "b", 200)
	if got := target.got(); len(got) != 1 || got[0].method != "GET" || got[0].keys != 0 {
		t.Errorf("got %+v, want one GET without a key", got)
	}
}

func TestNew_reportsEveryFault(t *testing.T) {
	_, err := idemclient.New(idemclient.Config{Header: "a b", Methods: []string{"GET"}, Attempts: -1, MaxAge: time.Second})
	for _, want := range []string{"Header", "Methods", "Attempts", "MaxAge"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}
