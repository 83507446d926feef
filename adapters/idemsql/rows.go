package idemsql

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows reads pgx's rows as values of database/sql.
type rows struct {
	rows   pgx.Rows
	types  *pgtype.Map
	binary pgx.QueryResultFormatsByOID
	fields []pgconn.FieldDescription
	first  bool // the first row has been read ahead
	more   bool // and there was one
}

var _ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)

// formats are the types whose values database/sql has a type for. All others are
// asked for as text.
func formats() pgx.QueryResultFormatsByOID {
	const binary = pgtype.BinaryFormatCode
	return pgx.QueryResultFormatsByOID{
		pgtype.BoolOID: binary, pgtype.ByteaOID: binary, pgtype.DateOID: binary,
		pgtype.TimestampOID: binary, pgtype.TimestamptzOID: binary,
		pgtype.Float4OID: binary, pgtype.Float8OID: binary,
		pgtype.Int2OID: binary, pgtype.Int4OID: binary, pgtype.Int8OID: binary,
		pgtype.OIDOID: binary, pgtype.XIDOID: binary, pgtype.CIDOID: binary,
	}
}

// newRows reads ahead as far as the first row, so that a statement which fails
// does so at once, as database/sql's users expect.
func newRows(r pgx.Rows, binary pgx.QueryResultFormatsByOID) (*rows, error) {
	more := r.Next()
	if !more {
		if err := r.Err(); err != nil {
			return nil, err
		}
	}
	return &rows{rows: r, types: pgtype.NewMap(), binary: binary, fields: r.FieldDescriptions(), first: true, more: more}, nil
}

func (r *rows) Columns() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.Name
	}
	return names
}

// ColumnTypeDatabaseTypeName is the type's name in PostgreSQL, in capitals, or
// its number if pgx does not know it.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	oid := r.fields[i].DataTypeOID
	if known, ok := r.types.TypeForOID(oid); ok {
		return strings.ToUpper(known.Name)
	}
	return strconv.FormatUint(uint64(oid), 10)
}

func (r *rows) Next(dest []driver.Value) error {
	more := r.more
	if !r.first {
		more = r.rows.Next()
	}
	r.first = false
	if !more {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	values := r.rows.RawValues()
	if len(values) != len(dest) {
		return pgx.ErrTxClosed // the request ended meanwhile
	}
	for i, raw := range values {
		var err error
		if dest[i], err = r.value(r.fields[i], raw); err != nil {
			return fmt.Errorf("idemsql: column %d (%s): %w", i+1, r.fields[i].Name, err)
		}
	}
	return nil
}

// value converts one value as pgx's driver for database/sql does: numbers, bytes,
// bool and time.Time as such, any other type as the text that PostgreSQL writes,
// which for JSON and XML is bytes.
func (r *rows) value(f pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	known, ok := r.types.TypeForOID(f.DataTypeOID)
	switch {
	case raw == nil:
		return nil, nil
	case ok && r.binary[f.DataTypeOID] == pgtype.BinaryFormatCode:
		return known.Codec.DecodeDatabaseSQLValue(r.types, f.DataTypeOID, f.Format, raw)
	}
	switch f.DataTypeOID {
	case pgtype.JSONOID, pgtype.JSONBOID, pgtype.XMLOID:
		return bytes.Clone(raw), nil
	default:
		return string(raw), nil
	}
}

// Close reads what is left and reports how the statement ended.
func (r *rows) Close() error {
	r.rows.Close()
	return r.rows.Err()
}
