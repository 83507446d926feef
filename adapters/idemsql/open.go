package idemsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/idem-go/idem"
)

// Open returns a handle whose statements run in the transaction of the guarded
// handler that their context belongs to. Outside one they return an error for
// which errors.Is(err, idem.ErrNoExecution) holds; so does Ping. It needs no
// server to be made and is safe for concurrent use by different requests. Close
// it when the program ends.
//
// BeginTx opens a savepoint: its Commit keeps what was written for the guard to
// commit, its Rollback undoes it, and one whose context ends before either makes
// the request end as not applied. One that the handler leaves open is committed
// with the rest. The isolation level is the route's to choose (Route.TxOptions),
// so other options than the default are refused.
func Open() *sql.DB {
	db := sql.OpenDB(connector{})
	db.SetMaxIdleConns(-1) // a connection belongs to one request
	return db
}

// Tx returns the transaction of the guarded handler that ctx belongs to, as
// idem.Tx does: Commit returns idem.ErrTxOwned, Rollback makes the request end as
// not applied, and the handler just returns. It may be called more than once; all
// that it returns is the same transaction. Outside a guarded handler the error is,
// for errors.Is, idem.ErrNoExecution.
func Tx(ctx context.Context) (*sql.Tx, error) {
	db := sql.OpenDB(connector{whole: true})
	tx, err := db.BeginTx(ctx, nil)
	// What has begun keeps its connection; nothing else is to be begun here.
	return tx, errors.Join(err, db.Close())
}

// connector connects to the transaction of a guarded handler.
type connector struct {
	whole bool // to begin is to get the transaction itself, not a savepoint in it
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	tx, err := idem.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{tx: tx, current: tx, whole: c.whole}, nil
}

func (c connector) Driver() driver.Driver { return unnamed{} }

// unnamed is the driver that database/sql asks a connector for. It opens nothing
// by name.
type unnamed struct{}

func (unnamed) Open(string) (driver.Conn, error) {
	return nil, errors.New("idemsql: there is nothing to open by name; use idemsql.Open or idemsql.Tx")
}
