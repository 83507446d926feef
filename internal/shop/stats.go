package shop

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem"
)

// summaryTimeout is how long statistics wait for the bank.
const summaryTimeout = time.Second

// stats is what GET /stats answers.
type stats struct {
	Orders          int64 `json:"orders"`
	UnguardedOrders int64 `json:"unguarded_orders"`
	Bookings        int64 `json:"bookings"`
	Payments        int64 `json:"payments"` // captured
	// BankCharges is what the bank says of all shops that it charges for; null where
	// there is no bank that could say.
	BankCharges *int64 `json:"bank_charges"`
	Refunds     int64  `json:"refunds"`  // done
	Receipts    int64  `json:"receipts"` // sent, by a task: soon after its order
}

// customerStats is what GET /stats?customers=FIRST-LAST answers.
type customerStats struct {
	Orders          int64 `json:"orders"`
	DoubleOrders    int64 `json:"double_orders"` // beyond one for each customer
	UnguardedOrders int64 `json:"unguarded_orders"`
	UnguardedDouble int64 `json:"unguarded_double_orders"`
}

// readStats is GET /stats.
func (s *Shop) readStats(w http.ResponseWriter, r *http.Request) {
	if customers := r.URL.Query().Get("customers"); customers != "" {
		s.readCustomerStats(w, r, customers)
		return
	}
	var st stats
	err := s.pool.QueryRow(r.Context(), statement("stats")).Scan(&st.Orders, &st.UnguardedOrders, &st.Bookings, &st.Payments,
		&st.Refunds, &st.Receipts)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	st.BankCharges = s.bankCharges(r.Context()) // after the payments, which come after their charges
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, "application/json", st)
}

// bankCharges asks the bank how often it has charged; nil if it cannot say.
func (s *Shop) bankCharges(ctx context.Context) *int64 {
	if s.bank == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	summary, err := s.bank.Summary(ctx)
	if err != nil {
		s.logger.DebugContext(ctx, "shop: the bank has not said what it charged", "error", err)
		return nil
	}
	return &summary.Charges
}

// readCustomerStats is for a client that means one order for each customer of a
// range of its own, as the page does: whatever is more is a double, and nobody
// else's orders disturb the count.
func (s *Shop) readCustomerStats(w http.ResponseWriter, r *http.Request, customers string) {
	first, last, ok := parseCustomers(customers)
	if !ok {
		refuse(w, "query-invalid", fmt.Sprintf("customers must be like 100-199, whole numbers from 1 to %d.", maxCustomer))
		return
	}
	guarded, err := TallyOrders(r.Context(), s.pool, first, last)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	unguarded, err := TallyUnguardedOrders(r.Context(), s.pool, first, last)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, "application/json", customerStats{
		Orders: guarded.Rows, DoubleOrders: guarded.Rows - guarded.Intents,
		UnguardedOrders: unguarded.Rows, UnguardedDouble: unguarded.Rows - unguarded.Intents,
	})
}

func parseCustomers(text string) (first, last int64, ok bool) {
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.ParseInt(to, 10, 64)
	return first, last, err == nil && first >= 1 && first <= last && last <= maxCustomer
}

// healthy is GET /healthz: the process is alive. It does not ask the database,
// so that an outage of that does not make a supervisor restart this.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "alive"})
}

// ready is GET /readyz: the database answers and has the tables this program
// needs.
func (s *Shop) ready(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	version, err := idem.SchemaVersion(r.Context(), s.pool)
	if err != nil {
		s.logger.WarnContext(r.Context(), "shop: not ready", "error", err)
		refuse(w, "unavailable", "The database cannot be reached.")
		return
	}
	migrations := idem.Migrations()
	var tables bool
	err = s.pool.QueryRow(r.Context(), statement("ready")).Scan(&tables)
	switch {
	case err != nil:
		s.logger.WarnContext(r.Context(), "shop: not ready", "error", err)
		refuse(w, "unavailable", "The database cannot be reached.")
	case version != migrations[len(migrations)-1].Version || !tables:
		refuse(w, "unavailable", "The database does not have the tables that this program needs.")
	default:
		writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "ready"})
	}
}
