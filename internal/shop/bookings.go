package shop

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// slotLayout is how a slot is written: a minute of the shop's wall clock.
const slotLayout = "2006-01-02T15:04"

// booking is a booking as it is answered.
type booking struct {
	ID         int64  `json:"id"`
	CustomerID int64  `json:"customer_id"`
	Slot       string `json:"slot"`
}

// newBooking is a booking as it is asked for.
type newBooking struct {
	CustomerID int64  `json:"customer_id"`
	Slot       string `json:"slot"`
}

// createBooking is POST /bookings, behind the guard. A taken slot is found by
// the unique index, never by looking first; the refusal is remembered.
func (s *Shop) createBooking(w http.ResponseWriter, r *http.Request) {
	who, err := principal(r)
	if err != nil {
		refuse(w, "unauthenticated", authenticate)
		return
	}
	asked, slot, ok := readBooking(w, r)
	if !ok {
		return
	}
	b := booking{CustomerID: asked.CustomerID, Slot: asked.Slot}
	err = idem.Tx(r.Context()).QueryRow(r.Context(), statement("booking_insert"), who, asked.CustomerID, slot).Scan(&b.ID)
	taken := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !taken {
		s.fail(w, r, err)
		return
	}
	if makeTrouble(w, r) {
		return
	}
	if taken {
		refuse(w, "slot-taken", "Somebody has this slot. Choose another one, with a new key.")
		return
	}
	writeJSON(w, http.StatusCreated, "application/json", b)
}

// readBooking reads what is asked for. It has answered if ok is false.
func readBooking(w http.ResponseWriter, r *http.Request) (asked newBooking, slot time.Time, ok bool) {
	if !readBody(w, r, &asked) {
		return asked, slot, false
	}
	faults := positive("customer_id", asked.CustomerID, maxCustomer)
	slot, err := time.Parse(slotLayout, asked.Slot)
	if err != nil || slot.Year() < 2000 {
		faults += "slot must be a minute from the year 2000 on, written like 2027-01-15T19:00. "
	}
	if faults != "" {
		refuse(w, "booking-invalid", strings.TrimSpace(faults))
		return asked, slot, false
	}
	return asked, slot, true
}
