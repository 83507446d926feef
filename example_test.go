package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

func ExampleParseKey() {
	for _, value := range []string{`abc`, `"abc"`, `ABC`, `a,b`} {
		key, err := idem.ParseKey(value)
		fmt.Println(key, errors.Is(err, idem.ErrKeyInvalid))
	}
	// Output:
	// abc false
	// abc false
	// ABC false
	//  true
}

func ExampleOpen() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()

	if _, err := idem.Migrate(ctx, pool); err != nil {
		fmt.Println(err)
		return
	}
	db, err := idem.Open(ctx, pool, idem.Config{})
	fmt.Println(db != nil, err)
	// Output: true <nil>
}

func ExampleSweep() {
	ctx := context.Background()
	pool, done := pgtest.ForExample()
	defer done()
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	swept, err := idem.Sweep(ctx, db)
	fmt.Println(swept.Deleted, swept.Stripped, err)
	// Output: 0 0 <nil>
}

// A program adds its own invariants to Idem's: here, that no account is
// overdrawn.
func ExampleCheck() {
	ctx := context.Background()
	pool, done := pgtest.ForExample()
	defer done()
	overdrawn := func(ctx context.Context, tx pgx.Tx) ([]idem.Violation, error) {
		rows, err := tx.Query(ctx, "select id, balance from (values ('cash', 10), ('ana', -5)) as accounts (id, balance) where balance < 0")
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v idem.Violation, err error) {
			var balance int
			err = row.Scan(&v.Row, &balance)
			v.Invariant, v.Table, v.Detail = "not_overdrawn", "accounts", fmt.Sprintf("the balance is %d", balance)
			return v, err
		})
	}
	db, err := idem.Open(ctx, pool, idem.Config{Checks: []idem.CheckFunc{overdrawn}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for v, err := range idem.Check(ctx, db) {
		fmt.Println(v.Invariant, v.Row, v.Detail, err)
	}
	// Output: not_overdrawn ana the balance is -5 <nil>
}
