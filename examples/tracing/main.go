// Command tracing takes orders and writes their receipts in the background, and prints
// the spans of both.
//
//	DATABASE_URL=postgres://localhost/shop go run .
//	curl -i -H 'Idempotency-Key: k1' -H 'X-Request-Id: req-1' -d '{"amount":1500}' http://localhost:8000/orders
//	curl -i -H 'Idempotency-Key: k1' -H 'X-Request-Id: req-2' -d '{"amount":1500}' http://localhost:8000/orders
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/queue"
	"github.com/idem-go/idem/tracing"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const schema = `
create table if not exists orders (id bigint generated always as identity primary key, amount bigint not null);
create table if not exists receipts (order_id bigint not null)`

// Receipt is the payload of a task.
type Receipt struct {
	Order int64 `json:"order"`
}

var receiptSend = queue.Define[Receipt]("receipt.send", queue.Options{})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exporter, err := stdouttrace.New(stdouttrace.WithPrettyPrint()) // or one for OTLP
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	listener, err := net.Listen("tcp", "localhost:8000")
	if err != nil {
		log.Fatal(err)
	}
	err = run(ctx, os.Getenv("DATABASE_URL"), listener)
	if err := errors.Join(err, provider.Shutdown(context.Background())); err != nil {
		log.Fatal(err)
	}
}

// run serves and works until ctx ends.
func run(ctx context.Context, url string, listener net.Listener) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, schema); err != nil {
		return err
	}
	if _, err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	db, err := idem.Open(ctx, pool, idem.Config{
		Observe: idem.LogEvents(slog.Default()), // a replay's line has request=req-2 first_request=req-1
		Tracer:  tracing.New(tracing.Config{}),
	})
	if err != nil {
		return err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", guard.Route(idemhttp.Route{Name: "POST /orders"})(http.HandlerFunc(createOrder)))
	// The server's span, and the client's trace that it goes on with, come from outside.
	server := &http.Server{Handler: otelhttp.NewHandler(mux, "shop")}
	go func() { _ = server.Serve(listener) }() // until it is closed

	worker := queue.NewWorker(db, queue.Config{})
	receiptSend.Handle(worker, sendReceipt)
	err = worker.Run(ctx)
	return errors.Join(err, server.Close())
}

// createOrder writes an order and enqueues its receipt. The task remembers this trace.
func createOrder(w http.ResponseWriter, r *http.Request) {
	ctx, tx := r.Context(), idem.Tx(r.Context())
	var o struct{ ID, Amount int64 }
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, "the body is not an order", http.StatusBadRequest)
		return
	}
	err := tx.QueryRow(ctx, "insert into orders (amount) values ($1) returning id", o.Amount).Scan(&o.ID)
	if err == nil {
		_, err = receiptSend.Enqueue(ctx, tx, fmt.Sprint("receipt:order:", o.ID), Receipt{Order: o.ID})
	}
	if err != nil {
		http.Error(w, "the order could not be written", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o) // into the guard's memory, which does not fail
}

// sendReceipt writes a receipt, in a trace that links to the order's.
func sendReceipt(ctx context.Context, tx pgx.Tx, r Receipt) error {
	_, err := tx.Exec(ctx, "insert into receipts (order_id) values ($1)", r.Order)
	return err
}
