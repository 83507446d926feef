package main

import (
	"context"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type client = connect.Client[structpb.Struct, structpb.Struct]

// serve starts a server that speaks HTTP/1 and HTTP/2, as gRPC needs.
func serve(t *testing.T) (*pgxpool.Pool, func(...connect.ClientOption) *client) {
	t.Helper()
	pool := pgtest.New(t)
	handler, err := newHandler(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return pool, func(options ...connect.ClientOption) *client {
		return connect.NewClient[structpb.Struct, structpb.Struct](server.Client(), server.URL+createOrderProcedure, options...)
	}
}

// call sends one order. The response's header tells a replay.
func call(ctx context.Context, c *client, key string, amount float64) (*connect.Response[structpb.Struct], error) {
	msg, err := structpb.NewStruct(map[string]any{"customer_id": 123, "amount": amount})
	if err != nil {
		return nil, err
	}
	req := connect.NewRequest(msg)
	req.Header().Set("Idempotency-Key", key)
	return c.CallUnary(ctx, req)
}

func wantOrders(t *testing.T, pool *pgxpool.Pool, want int) {
	t.Helper()
	var got int
	if err := pool.QueryRow(t.Context(), "select count(*) from orders").Scan(&got); err != nil || got != want {
		t.Errorf("got %d orders (%v), want %d", got, err, want)
	}
}

func TestOrders_repeatsAreReplayedMismatchesRefusedAndErrorsRolledBack(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"protobuf": nil,
		"JSON":     {connect.WithProtoJSON()},
		"gzip":     {connect.WithSendGzip()},
	} {
		t.Run(name, func(t *testing.T) {
			pool, newClient := serve(t)
			c := newClient(options...)
			first, err := call(t.Context(), c, "k", 1500)
			if err != nil || first.Header().Get("Idempotent-Replayed") != "" {
				t.Fatalf("the first got %v, %v", first, err)
			}
			again, err := call(t.Context(), c, "k", 1500)
			if err != nil || again.Header().Get("Idempotent-Replayed") != "true" || !proto.Equal(first.Msg, again.Msg) {
				t.Errorf("the repeat got %v, %v, want %v replayed", again, err, first.Msg)
			}
			if got, err := call(t.Context(), c, "k", 1501); err == nil {
				t.Errorf("another amount got %v, want an error", got)
			}
			wantOrders(t, pool, 1)

			if got, err := call(t.Context(), c, "refused", -1); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("a negative amount got %v, %v, want invalid_argument", got, err)
			}
			wantOrders(t, pool, 1)
			if got, err := call(t.Context(), c, "refused", 1); err != nil || got.Header().Get("Idempotent-Replayed") != "" {
				t.Errorf("the corrected order got %v, %v", got, err)
			}
			wantOrders(t, pool, 2)
		})
	}
}

func TestStreams_gRPCIsRefusedBeforeAnyClaim(t *testing.T) {
	for name, option := range map[string]connect.ClientOption{"gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb()} {
		t.Run(name, func(t *testing.T) {
			pool, newClient := serve(t)
			if got, err := call(t.Context(), newClient(option), "k", 1500); err == nil {
				t.Errorf("got %v, want an error", got)
			}
			wantOrders(t, pool, 0)
			var keys int
			if err := pool.QueryRow(t.Context(), "select count(*) from idem.idempotency_keys").Scan(&keys); err != nil || keys != 0 {
				t.Errorf("got %d keys (%v), want none", keys, err)
			}
		})
	}
}

func TestStreams_connectStreamsAreRefused(t *testing.T) {
	_, newClient := serve(t)
	stream := newClient().CallClientStream(t.Context())
	stream.RequestHeader().Set("Idempotency-Key", "k")
	if _, err := stream.CloseAndReceive(); err == nil {
		t.Error("a stream was answered")
	}
}
