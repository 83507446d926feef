package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/adapters/idemsql"
	"github.com/idem-go/idem/idemhttp"
)

func TestD6_methodsThatEndTheTransactionApplyNothing(t *testing.T) {
	for name, end := range map[string]func(*sql.Tx) error{
		"Commit": func(tx *sql.Tx) error {
			if err := tx.Commit(); !errors.Is(err, idem.ErrTxOwned) {
				return errors.Join(errors.New("Commit did not say that the guard commits"), err)
			}
			return nil
		},
		"Rollback": (*sql.Tx).Rollback,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, run int64) error {
				tx, err := idemsql.Tx(ctx)
				if err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, insert, 1); err != nil || run > 1 {
					return err
				}
				return end(tx)
			})
			r.want(r.send("k", "a"), 500, "not-applied")
			r.wantCounts(0, 0)
			r.want(r.send("k", "a"), 201, "")
			r.wantCounts(1, 1)
		})
	}
}

func TestD6_statementsThatEndTheTransactionAreFoundOut(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			var end atomic.Value
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
				return errors.Join(d.run(ctx, insert, 1), d.run(ctx, end.Load().(string)))
			})
			ends := []string{"commit", "commit and chain"}
			if name == "Tx, Exec" || name == "DB, Exec" || name == "GORM" {
				ends = append(ends, "commit; begin") // only what is not prepared can be several statements
			}
			for i, e := range ends {
				end.Store(e)
				r.want(r.send(fmt.Sprint("k", i), "a"), 409, "outcome-unknown")
				end.Store("select 1")
				r.want(r.send(fmt.Sprint("k", i), "a"), 409, "outcome-unknown")
				r.wantCounts(i+1, i+1)
			}
			end.Store("rollback")
			r.want(r.send("k", "a"), 500, "not-applied")
			r.wantCounts(len(ends), len(ends))
			end.Store("select 1")
			r.want(r.send("k", "a"), 201, "")
			r.wantCounts(len(ends)+1, len(ends)+1)
		})
	}
}
