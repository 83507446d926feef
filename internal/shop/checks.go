package shop

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// checks are the shop's own invariants, one for each file sql/check_*.sql.
func checks() []idem.CheckFunc {
	return []idem.CheckFunc{check("ledger_sum"), check("one_charge_per_payment"),
		check("one_receipt_per_order"), check("one_refund_per_payment")}
}

func check(invariant string) idem.CheckFunc {
	return func(ctx context.Context, tx pgx.Tx) ([]idem.Violation, error) {
		rows, err := tx.Query(ctx, statement("check_"+invariant))
		if err != nil {
			return nil, fmt.Errorf("shop: check %s: %w", invariant, err)
		}
		broken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (idem.Violation, error) {
			v := idem.Violation{Invariant: invariant}
			err := row.Scan(&v.Table, &v.Row, &v.Detail)
			return v, err
		})
		if err != nil {
			return nil, fmt.Errorf("shop: check %s: %w", invariant, err)
		}
		return broken, nil
	}
}
