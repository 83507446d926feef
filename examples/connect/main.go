// Command connect guards a procedure of a Connect service. The guard is an
// ordinary middleware around the procedure's handler, and works for unary calls of
// the Connect protocol; gRPC and streams are told 415 before anything is claimed.
//
//	DATABASE_URL=postgres://localhost/shop go run .
//	curl -i -H 'Content-Type: application/json' -H 'Idempotency-Key: k1' -d '{"customer_id":123,"amount":1500}' \
//	  http://localhost:8000/shop.v1.OrderService/CreateOrder
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"

	"connectrpc.com/connect"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/types/known/structpb"
)

const schema = `create table if not exists orders (
	id          bigint generated always as identity primary key,
	customer_id bigint not null,
	amount      bigint not null
)`

// createOrderProcedure is the path under which the procedure is called. A program
// with a .proto file has it, and message types of its own, from the generated code.
const createOrderProcedure = "/shop.v1.OrderService/CreateOrder"

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newHandler(ctx, pool)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8000", handler))
}

// newHandler prepares the database and guards the procedure.
func newHandler(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	if _, err := pool.Exec(ctx, schema); err != nil {
		return nil, err
	}
	if _, err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	route := guard.Route(idemhttp.Route{
		Name:        createOrderProcedure,
		Fingerprint: sameMessage,
		// Connect sends 409 for already_exists, which is a refusal to remember,
		// and for aborted, which asks for a retry. A service that uses aborted
		// says here which of the two its 409 is.
		Policies: map[int]idemhttp.Policy{http.StatusConflict: idemhttp.RollbackAndStore},
	})
	mux := http.NewServeMux()
	mux.Handle(createOrderProcedure, route(connect.NewUnaryHandler(createOrderProcedure, createOrder)))
	return mux, nil
}

// createOrder writes and answers. What it writes commits with its answer, and is
// rolled back with an error.
func createOrder(ctx context.Context, req *connect.Request[structpb.Struct]) (*connect.Response[structpb.Struct], error) {
	customer, amount := req.Msg.GetFields()["customer_id"].GetNumberValue(), req.Msg.GetFields()["amount"].GetNumberValue()
	var id int64
	err := idem.Tx(ctx).QueryRow(ctx, "insert into orders (customer_id, amount) values ($1, $2) returning id",
		int64(customer), int64(amount)).Scan(&id)
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, errors.New("the order could not be written"))
	}
	if amount <= 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("amount must be positive"))
	}
	answer, err := structpb.NewStruct(map[string]any{"id": id, "customer_id": customer, "amount": amount})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}
