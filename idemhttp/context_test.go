package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

func TestContext_handlersEndsWithItsRequest(t *testing.T) {
	r := newRig(t)
	contexts := make(chan context.Context, 1)
	r.handle("/x", idemhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, req *http.Request) {
		contexts <- req.Context()
		w.WriteHeader(201)
	})
	r.serve()
	for _, key := range []string{"k", ""} {
		r.want(r.send(post("/x", key, "{}")), 201, "")
		ctx := <-contexts
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("the context ended with %v, want context.Canceled", ctx.Err())
			}
		case <-time.After(5 * time.Second): // long before the handler's limit
			t.Errorf("key %q: the handler's context outlives its request", key)
		}
	}
}
