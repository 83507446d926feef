package machine

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
)

var (
	//go:embed sql/wal.sql
	walStats string
	//go:embed sql/wal_inserted.sql
	walInserted string
	//go:embed sql/wal_flushed.sql
	walFlushed string
)

// WAL is the position in the write-ahead log, in bytes.
func (p *Postgres) WAL(ctx context.Context) (bytes float64, err error) {
	err = p.Pool.QueryRow(ctx, walInserted).Scan(&bytes)
	return bytes, err
}

// Flushed is where the write-ahead log has been written to.
func (p *Postgres) Flushed(ctx context.Context) (at string, err error) {
	err = p.Pool.QueryRow(ctx, walFlushed).Scan(&at)
	return at, err
}

// ExplainWAL makes WriteWAL possible. It needs PostgreSQL 15.
func (p *Postgres) ExplainWAL(ctx context.Context) error {
	_, err := p.Pool.Exec(ctx, "create extension pg_walinspect")
	return err
}

// WriteWAL writes to a file what the write-ahead log from one position to another holds
// for each of n things.
func (p *Postgres) WriteWAL(ctx context.Context, file, from, to, thing string, n float64) error {
	bytesHead, recordsHead := "bytes/"+thing, "records/"+thing
	text := bytesHead + "  " + recordsHead + "  record\n"
	if from == to { // of which PostgreSQL says that it is in the future
		return os.WriteFile(file, []byte(text), 0o644)
	}
	rows, err := p.Pool.Query(ctx, walStats, from, to)
	if err != nil {
		return err
	}
	var kind string
	var count, bytes float64
	_, err = pgx.ForEachRow(rows, []any{&kind, &count, &bytes}, func() error {
		text += fmt.Sprintf("%*.1f  %*.2f  %s\n", len(bytesHead), bytes/n, len(recordsHead), count/n, kind)
		return nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
