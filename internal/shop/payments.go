package shop

import (
	"errors"
	"net/http"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/jackc/pgx/v5"
)

// paymentStatus is what has become of a payment, as stored.
type paymentStatus string

// The states of a payment; the last two are final.
const (
	pending  paymentStatus = "pending"
	captured paymentStatus = "captured"
	declined paymentStatus = "declined"
)

// payment is a payment as it is answered.
type payment struct {
	ID      int64         `json:"id"`
	OrderID int64         `json:"order_id"`
	Amount  int64         `json:"amount"` // in minor units
	Status  paymentStatus `json:"status"`

	card string
	mine bool // it was made by this request, not by another one for the same order
}

// newPayment is a payment as it is asked for.
type newPayment struct {
	OrderID int64  `json:"order_id"`
	Card    string `json:"card"`
}

// createPayment is POST /payments, behind the guard and on a lease. It may be killed
// anywhere and run again: what has been done is found, not done again. A request that
// meets another's payment of the same order finishes that one, with that one's card,
// before it says anything.
func (s *Shop) createPayment(w http.ResponseWriter, r *http.Request) {
	if s.bank == nil {
		refuse(w, "bank-missing", "This shop was started without a bank, so nothing can be paid here.")
		return
	}
	who, key, _ := idem.KeyOf(r.Context())
	var asked newPayment
	if !readBody(w, r, &asked) || !asked.valid(w) {
		return
	}
	o, err := s.orderOf(r.Context(), who, asked.OrderID)
	if errors.Is(err, pgx.ErrNoRows) {
		refuse(w, "not-found", noOrder)
		return
	}
	for answered := false; err == nil && !answered; {
		answered, err = s.pay(w, r, intent{who: who, key: key, order: o, card: asked.Card})
	}
	if err != nil {
		s.failPayment(w, r, err)
	}
}

// maxCard is the longest name of a card in bytes.
const maxCard = 64

// valid reports whether this can be paid. It has answered if not. Which cards there
// are is the bank's to know.
func (p newPayment) valid(w http.ResponseWriter) bool {
	faults := positive("order_id", p.OrderID, maxCustomer)
	unseen := func(c rune) bool { return c < '!' || c > '~' }
	if p.Card == "" || len(p.Card) > maxCard || strings.ContainsFunc(p.Card, unseen) {
		faults += "card must be a card's name of 1 to 64 visible characters, such as tok_ok. "
	}
	if faults != "" {
		refuse(w, "payment-invalid", strings.TrimSpace(faults))
	}
	return faults == ""
}

// pay takes the order's payment to its end: this request's own, or the one that is in
// its way. It has answered unless that one was another's and is declined now.
func (s *Shop) pay(w http.ResponseWriter, r *http.Request, in intent) (answered bool, err error) {
	ctx := r.Context()
	p, err := s.openPayment(ctx, in)
	if err != nil {
		return false, err
	}
	came := p.Status
	if came == pending {
		if came, err = s.charge(ctx, p); err != nil {
			return false, err
		}
	}
	if came == declined && !p.mine {
		return false, s.inOwnTx(ctx, func(tx pgx.Tx) error { return conclude(ctx, tx, p, declined) })
	}
	if p.Status == pending {
		idem.KeepWrites(ctx) // they are true whatever this request is told
		if err := conclude(ctx, idem.Tx(ctx), p, came); err != nil {
			return false, err
		}
	}
	if makeTrouble(w, r) {
		return true, nil
	}
	switch {
	case came == declined:
		refuse(w, "card-declined", "The bank declined the card; nothing was charged. Try another card, with a new key.")
	case !p.mine:
		refuse(w, "already-paid", "This order has been paid by another request.")
	default:
		p.Status = came
		writeJSON(w, http.StatusCreated, "application/json", p)
	}
	return true, nil
}

// failPayment answers a payment that has not come to its end. Nothing of it is
// remembered: the same request again goes on where this one has stopped.
func (s *Shop) failPayment(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, idem.ErrMismatch):
		refuse(w, "key-spent", "This key has been used for this order before, with another card. Choose a new key.")
	case errors.Is(err, idem.ErrInFlight), errors.Is(err, idem.ErrOutcomeUnknown), errors.Is(err, idem.ErrLeaseLost):
		// The guard answers for those; this is for what it has not heard of.
		refuse(w, "unavailable", "This payment is not settled. Send the same request again, with the same key.")
	case errors.Is(err, bank.ErrUnreachable):
		s.logger.WarnContext(r.Context(), "shop: the bank is away", "error", err)
		refuse(w, "unavailable", "The bank cannot be reached; nothing was charged. Send the same request again, with the same key.")
	case errors.Is(err, idem.ErrUnavailable):
		s.logger.WarnContext(r.Context(), "shop: the database is away", "error", err)
		refuse(w, "unavailable", "The database cannot be reached. Send the same request again, with the same key.")
	default:
		s.fail(w, r, err)
	}
}
