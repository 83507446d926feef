// Package standby sees the one thing that a COMMIT tells only by a warning: that
// it did not wait for the synchronous standby, because the wait was cancelled. The
// transaction is then committed here and may be lost by a failover.
package standby

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Where a connection's own data keeps that it is watched, and that it was warned.
const (
	watchedKey = "idem: watched"
	warnedKey  = "idem: warned"
)

// routine is where the server raises the warning (syncrep.c), whatever language
// it speaks.
const routine = "SyncRepWaitForLSN"

// Prepare makes every connection that config leads to take note of the warning.
// What config did with notices and new connections, it still does.
func Prepare(config *pgxpool.Config) {
	onNotice, afterConnect := config.ConnConfig.OnNotice, config.AfterConnect
	config.ConnConfig.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Routine == routine {
			conn.CustomData()[warnedKey] = true
		}
		if onNotice != nil {
			onNotice(conn, n)
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[watchedKey] = true
		if afterConnect != nil {
			return afterConnect(ctx, conn)
		}
		return nil
	}
}

// Watched reports whether conn takes note of the warning.
func Watched(conn *pgconn.PgConn) bool { return conn.CustomData()[watchedKey] == true }

// Warned reports whether conn was warned since it was last asked.
func Warned(conn *pgconn.PgConn) bool {
	warned := conn.CustomData()[warnedKey] == true
	delete(conn.CustomData(), warnedKey)
	return warned
}
