package shop

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// refund is a refund as it is answered. Its status is pending, done or failed.
type refund struct {
	ID        int64  `json:"id"`
	PaymentID int64  `json:"payment_id"`
	Amount    int64  `json:"amount"` // in minor units: all of the payment
	Status    string `json:"status"`
}

// newRefund is a refund as it is asked for.
type newRefund struct {
	PaymentID int64 `json:"payment_id"`
}

// createRefund is POST /refunds, behind the guard, in the transaction: the refund, the
// task that asks the bank for it, and the answer commit together. That a payment is
// refunded already is found by the unique index; whatever key came first has it.
func (s *Shop) createRefund(w http.ResponseWriter, r *http.Request) {
	if s.bank == nil {
		refuse(w, "bank-missing", "This shop was started without a bank, so nothing can be refunded here.")
		return
	}
	who, err := principal(r)
	if err != nil {
		refuse(w, "unauthenticated", authenticate)
		return
	}
	var asked newRefund
	if !readBody(w, r, &asked) {
		return
	}
	if fault := positive("payment_id", asked.PaymentID, maxCustomer); fault != "" {
		refuse(w, "refund-invalid", strings.TrimSpace(fault))
		return
	}
	f, refused, err := s.openRefund(r, who, asked)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case makeTrouble(w, r):
	case refused != nil:
		refuse(w, refused.code, refused.detail)
	default:
		w.Header().Set("Location", "/refunds/"+strconv.FormatInt(f.ID, 10))
		writeJSON(w, http.StatusAccepted, "application/json", f)
	}
}

// refusedRefund is why there is no refund to be made.
type refusedRefund struct{ code, detail string }

// openRefund makes the refund and its task.
func (s *Shop) openRefund(r *http.Request, who string, asked newRefund) (f refund, refused *refusedRefund, err error) {
	ctx, tx := r.Context(), idem.Tx(r.Context())
	var p payment
	err = tx.QueryRow(ctx, statement("payment_of"), asked.PaymentID, who).Scan(&p.ID, &p.OrderID, &p.Amount, &p.Status, &p.card)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return f, &refusedRefund{"not-found", "You have no payment with this id."}, nil
	case err != nil:
		return f, nil, err
	case p.Status != captured:
		return f, &refusedRefund{"not-captured", "Only a payment that is captured can be refunded; this one is " + string(p.Status) + "."}, nil
	}
	f = refund{PaymentID: p.ID, Amount: p.Amount, Status: string(pending)}
	err = tx.QueryRow(ctx, statement("refund_insert"), p.ID, who, p.Amount).Scan(&f.ID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return f, &refusedRefund{"already-refunded", "Another request has asked for the refund of this payment."}, nil
	case err != nil:
		return f, nil, err
	}
	t := refundTask{RefundID: f.ID, PaymentID: p.ID, Amount: p.Amount, Card: p.card}
	_, err = s.refunds.Enqueue(ctx, tx, t.name(), t)
	return f, nil, err
}

// readRefundByID is GET /refunds/{id}. A stranger's refund is answered as one that does
// not exist.
func (s *Shop) readRefundByID(w http.ResponseWriter, r *http.Request) {
	who, err := principal(r)
	if err != nil {
		refuse(w, "unauthenticated", authenticate)
		return
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		refuse(w, "not-found", noRefund)
		return
	}
	var f refund
	err = s.pool.QueryRow(r.Context(), statement("refund_read"), id, who).Scan(&f.ID, &f.PaymentID, &f.Amount, &f.Status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		refuse(w, "not-found", noRefund)
	case err != nil:
		s.fail(w, r, err)
	default:
		w.Header().Set("Cache-Control", "no-store") // it changes
		writeJSON(w, http.StatusOK, "application/json", f)
	}
}

const noRefund = "You have no refund with this id."
