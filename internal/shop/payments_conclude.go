package shop

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// conclude makes rows of what a pending payment has come to, once, whoever is first:
// whoever made it, or whoever met it.
func conclude(ctx context.Context, tx pgx.Tx, p payment, came paymentStatus) error {
	if came == captured {
		key := fmt.Sprintf("post:payment:%d", p.ID)
		return concludeOnce(ctx, tx, key, 2, "payment_capture", p.ID, key)
	}
	return concludeOnce(ctx, tx, fmt.Sprintf("decline:payment:%d", p.ID), 1, "payment_decline", p.ID)
}

// concludeOnce runs a statement that must write so many rows.
func concludeOnce(ctx context.Context, tx pgx.Tx, key string, rows int64, name string, args ...any) error {
	_, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: effectScope, Key: key}, func(ctx context.Context, tx pgx.Tx) (int64, error) {
		tag, err := tx.Exec(ctx, statement(name), args...)
		if err == nil && tag.RowsAffected() != rows {
			err = fmt.Errorf("shop: %s: %s wrote %d rows, not %d: it is not pending", key, name, tag.RowsAffected(), rows)
		}
		return tag.RowsAffected(), err
	})
	return err
}
