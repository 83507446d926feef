package idemhttp_test

import (
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

func TestStreams_gRPCAndStreamsAreRefusedBeforeAnyClaim(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{KeyOptional: true}, createOrder(&runs))
	r.serve()
	refused := 0
	for _, mediaType := range []string{"application/grpc", "application/grpc+proto", "Application/gRPC; charset=utf-8",
		"application/grpc-web", "application/grpc-web-text+proto", "application/connect+json", "application/connect+proto",
		"application/connect+json; ;"} {
		for _, key := range []string{"k", "", "not a key"} {
			refused++
			got := r.send(sending{method: "POST", path: "/orders", key: key, body: `{"amount":1}`,
				header: map[string][]string{"Content-Type": {mediaType}}})
			r.want(got, 415, "media-type-unsupported")
		}
	}
	if n := runs.Load(); n != 0 {
		t.Errorf("the handler ran %d times, want never", n)
	}
	r.wantRows("select count(*) from idem.idempotency_keys", 0)
	if n := r.outcomes()[idem.OutcomeReleased]; n != refused {
		t.Errorf("%d events say released, want %d", n, refused)
	}
	r.want(r.send(post("/orders", "k", `{"amount":1}`)), 201, "")
}

func TestStreams_unaryCallsOfTheConnectProtocolPass(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	for key, mediaType := range map[string]string{"a": "application/json", "b": "application/proto", "c": "application/connectors"} {
		got := r.send(sending{method: "POST", path: "/orders", key: key, body: `{"amount":1}`,
			header: map[string][]string{"Content-Type": {mediaType}}})
		r.want(got, 201, "")
	}
}

func TestStreams_whoeverIsNotKnownIsToldThatFirst(t *testing.T) {
	r := newRig(t)
	r.handle("/orders", idemhttp.Route{}, createOrder(new(atomic.Int64)))
	r.serve()
	got := r.send(post("/orders", "k", "").as("revoked").with("Content-Type", "application/grpc"))
	r.want(got, 401, "unauthenticated")
}
