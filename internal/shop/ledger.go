package shop

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ledger is the shop's ledger, as GET /ledger answers it. Amounts are in minor units.
type Ledger struct {
	Accounts []Account `json:"accounts"` // by name
	Sum      int64     `json:"sum"`      // of all accounts: 0
}

// Account is an account and what all of its postings come to.
type Account struct {
	Name    string `json:"name"`
	Balance int64  `json:"balance"`
}

// ReadLedger computes the ledger from its postings, in one snapshot.
func ReadLedger(ctx context.Context, pool *pgxpool.Pool) (l Ledger, err error) {
	rows, err := pool.Query(ctx, statement("ledger"))
	if err == nil {
		l.Accounts, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Account])
	}
	if err != nil {
		return Ledger{}, fmt.Errorf("shop: ledger: %w", err)
	}
	for _, a := range l.Accounts {
		l.Sum += a.Balance
	}
	return l, nil
}

// readLedger is GET /ledger.
func (s *Shop) readLedger(w http.ResponseWriter, r *http.Request) {
	l, err := ReadLedger(r.Context(), s.pool)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, "application/json", l)
}
