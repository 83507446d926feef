package idemsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/idem-go/idem/adapters/idemsql"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// expressions are values of all kinds of types.
var expressions = []string{
	"true", "1::smallint", "-2::integer", "9007199254740993::bigint", "1.5::real", "0.1::double precision", "'NaN'::double precision",
	"1.50::numeric(10,2)", "12345678901234567890.123::numeric", "'NaN'::numeric", "'text ü'::text", "'v'::varchar(3)", "'b'::bpchar(3)", "'n'::name", "'c'::\"char\"",
	`'\x00ff'::bytea`, `''::bytea`, "null::text", "null::integer", "date '2027-01-15'", "timestamp '2027-01-15 19:00:00.123456'",
	"timestamptz '2027-01-15 19:00:00.5+03'", "time '19:00'", "interval '1 day 2 hours'", "'4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77'::uuid",
	`'{"a": [1, 2]}'::json`, `'{"a": [1, 2]}'::jsonb`, "array[1,2,null]::integer[]", "array['a','b c']::text[]", "int4range(1,5)",
	"inet '10.0.0.1/8'", "'infinity'::timestamptz", "row(1, 'x')", "point(1, 2)", "B'101'", "'pg_class'::regclass", "17::oid", "''::text", "xml '<a/>'",
}

// readAll reads one row of all expressions, and how their types are called.
func readAll(ctx context.Context, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, expression string) (value any, kind string, err error) {
	rows, err := db.QueryContext(ctx, "select "+expression)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, "", err
	}
	if !rows.Next() {
		return nil, "", fmt.Errorf("no row: %w", rows.Err())
	}
	if err := rows.Scan(&value); err != nil {
		return nil, "", err
	}
	return value, types[0].DatabaseTypeName(), rows.Err()
}

// same compares values, and bytes with the text that they are: database/sql
// scans either into either.
func same(got, want any) bool {
	if b, ok := got.([]byte); ok {
		if s, ok := want.(string); ok {
			return string(b) == s
		}
	}
	if at, ok := got.(time.Time); ok {
		other, ok := want.(time.Time)
		return ok && at.Equal(other)
	}
	return reflect.DeepEqual(got, want) || fmt.Sprint(got) == "NaN" && fmt.Sprint(want) == "NaN"
}

func TestValues_areThoseOfPgxsOwnDriver(t *testing.T) {
	db := idemsql.Open()
	t.Cleanup(func() { _ = db.Close() })
	var r *rig
	r = newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
		other := stdlib.OpenDBFromPool(r.pool)
		defer func() { _ = other.Close() }()
		for _, e := range expressions {
			got, kind, err := readAll(ctx, db, e)
			if err != nil {
				return fmt.Errorf("%s: %w", e, err)
			}
			want, wantKind, err := readAll(ctx, other, e)
			if err != nil {
				return fmt.Errorf("%s: %w", e, err)
			}
			if !same(got, want) || kind != wantKind {
				t.Errorf("%s: got %T %v of %s, want %T %v of %s", e, got, got, kind, want, want, wantKind)
			}
		}
		return nil
	})
	r.want(r.send("k", "a"), 201, "")
}

func TestValues_argumentsGoThere(t *testing.T) {
	db := idemsql.Open()
	t.Cleanup(func() { _ = db.Close() })
	at := time.Date(2027, 1, 15, 19, 0, 0, 0, time.UTC)
	r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
		var n, sum int64
		var s, list sql.NullString
		var gotAt time.Time
		err := db.QueryRowContext(ctx, "select $1::bigint, $2::text, $3::timestamptz, $4::text[]::text, (select sum(x) from unnest($5::int[]) x)",
			int32(7), sql.NullString{}, at, []string{"a", "b"}, []int{1, 2, 3}).Scan(&n, &s, &gotAt, &list, &sum)
		if err != nil {
			return err
		}
		if n != 7 || s.Valid || !gotAt.Equal(at) || list.String != "{a,b}" || sum != 6 {
			t.Errorf("got %d %v %v %v %d", n, s, gotAt, list, sum)
		}
		if err := db.QueryRowContext(ctx, "select @n::bigint", pgx.NamedArgs{"n": 8}).Scan(&n); err != nil || n != 8 {
			t.Errorf("a named argument of pgx's: %d, %v", n, err)
		}
		if _, err := db.ExecContext(ctx, "select $1::int", sql.Named("n", 1)); err == nil {
			t.Error("an argument with a name was taken")
		}
		if err := db.QueryRowContext(ctx, "select 1 where false").Scan(&n); err != sql.ErrNoRows {
			t.Errorf("no row: got %v, want sql.ErrNoRows", err)
		}
		if _, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable}); err == nil {
			t.Error("an isolation level was taken that the transaction may not have")
		}
		result, err := db.ExecContext(ctx, "insert into orders (amount) select generate_series(1, 3)")
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n != 3 || err != nil {
			t.Errorf("RowsAffected: got %d, %v, want 3", n, err)
		}
		return nil
	})
	r.want(r.send("k", "a"), 201, "")
	r.wantCounts(3, 1)
}
