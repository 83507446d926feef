package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// order is an order as it is answered.
type order struct {
	ID         int64  `json:"id"`
	CustomerID int64  `json:"customer_id"`
	Amount     int64  `json:"amount"` // in minor units
	Status     string `json:"status"`
}

// newOrder is an order as it is asked for.
type newOrder struct {
	CustomerID int64 `json:"customer_id"`
	Amount     int64 `json:"amount"`
}

// createOrder is POST /orders. It runs behind the guard, so it is written as if
// every request came once: whatever it inserts commits with its answer.
func (s *Shop) createOrder(w http.ResponseWriter, r *http.Request) {
	who, asked, ok := readOrder(w, r)
	if !ok {
		return
	}
	o, err := insertOrder(r.Context(), idem.Tx(r.Context()), "order_insert", who, asked)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	// The receipt is sent if and only if the order commits, by whichever shop is alive.
	_, err = s.receipts.Enqueue(r.Context(), idem.Tx(r.Context()), fmt.Sprintf("receipt:%d", o.ID), receipt{OrderID: o.ID})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if makeTrouble(w, r) {
		return
	}
	w.Header().Set("Location", "/orders/"+strconv.FormatInt(o.ID, 10))
	writeJSON(w, http.StatusCreated, "application/json", o)
}

// createUnguardedOrder is POST /unguarded/orders: the same, without the guard.
// A repeat is another order.
func (s *Shop) createUnguardedOrder(w http.ResponseWriter, r *http.Request) {
	who, asked, ok := readOrder(w, r)
	if !ok {
		return
	}
	o, err := insertOrder(r.Context(), s.pool, "order_insert_unguarded", who, asked)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if makeTrouble(w, r) {
		return
	}
	writeJSON(w, http.StatusCreated, "application/json", o)
}

// readOrder reads who asks and for what. It has answered if ok is false.
func readOrder(w http.ResponseWriter, r *http.Request) (who string, asked newOrder, ok bool) {
	who, err := principal(r)
	if err != nil {
		refuse(w, "unauthenticated", authenticate)
		return "", asked, false
	}
	if !readBody(w, r, &asked) {
		return "", asked, false
	}
	faults := positive("customer_id", asked.CustomerID, maxCustomer) + positive("amount (in minor units)", asked.Amount, maxAmount)
	if faults != "" {
		refuse(w, "order-invalid", strings.TrimSpace(faults))
		return "", asked, false
	}
	return who, asked, true
}

func insertOrder(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, name, who string, asked newOrder) (o order, err error) {
	err = db.QueryRow(ctx, statement(name), who, asked.CustomerID, asked.Amount).
		Scan(&o.ID, &o.CustomerID, &o.Amount, &o.Status)
	return o, err
}

// readOrderByID is GET /orders/{id}. A stranger's order is answered as one that
// does not exist.
func (s *Shop) readOrderByID(w http.ResponseWriter, r *http.Request) {
	who, err := principal(r)
	if err != nil {
		refuse(w, "unauthenticated", authenticate)
		return
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		refuse(w, "not-found", noOrder)
		return
	}
	o, err := s.orderOf(r.Context(), who, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		refuse(w, "not-found", noOrder)
	case err != nil:
		s.fail(w, r, err)
	default:
		writeJSON(w, http.StatusOK, "application/json", o)
	}
}

// orderOf reads one order of a principal; pgx.ErrNoRows says that there is none, or
// that it is a stranger's.
func (s *Shop) orderOf(ctx context.Context, who string, id int64) (o order, err error) {
	err = s.pool.QueryRow(ctx, statement("order_read"), id, who).Scan(&o.ID, &o.CustomerID, &o.Amount, &o.Status)
	return o, err
}

const (
	authenticate = "Send Authorization: Bearer demo-NAME, or no Authorization header to be the guest."
	noOrder      = "You have no order with this id."
)

// fail logs an error and answers that something went wrong, without saying what:
// the guard knows better which errors of the database mean "ask again". That a
// client has gone is no fault of the shop's.
func (s *Shop) fail(w http.ResponseWriter, r *http.Request, err error) {
	level := slog.LevelError
	if errors.Is(err, context.Canceled) {
		level = slog.LevelInfo
	}
	s.logger.Log(r.Context(), level, "shop: request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	refuse(w, "internal", "The shop could not do this now. Send the same request again, with the same key.")
}
