package idem_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

func TestKeyOf_isTheKeyOfTheRequest(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: func(*http.Request) (string, error) { return "ann", nil }})
	if err != nil {
		t.Fatal(err)
	}
	says := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope, key, ok := idem.KeyOf(r.Context())
		if !ok {
			scope, key = "nobody", "none"
		}
		_, _ = io.WriteString(w, scope+" "+key)
	})
	routes := map[string]http.Handler{
		"in the transaction": guard.Route(idemhttp.Route{Name: "in the transaction", KeyOptional: true})(says),
		"on a lease":         guard.Route(idemhttp.Route{Name: "on a lease", Lease: time.Second})(says),
	}
	send := func(h http.Handler, header string) string {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		if header != "" {
			r.Header.Set("Idempotency-Key", header)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	for name, h := range routes {
		if got, want := send(h, `"`+name[:2]+`"`), "ann "+name[:2]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := send(routes["in the transaction"], ""); got != "nobody none" {
		t.Errorf("without a key: got %q, want none", got)
	}
	if _, _, ok := idem.KeyOf(context.Background()); ok {
		t.Error("outside a guarded handler: got a key")
	}
}
