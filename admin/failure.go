package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5/pgconn"
)

// awayClasses are the classes of SQLSTATE with which a server says that it
// cannot serve now: connections, resources, operators, its system.
var awayClasses = [...]string{"08", "53", "57", "58"}

// failure names what was being done, and tells an absent database
// (idem.ErrUnavailable) from a refused statement. A nil err stays nil.
func failure(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("admin: %s: %w", doing, ctx.Err())
	case away(err):
		return fmt.Errorf("%w: %s: %w", idem.ErrUnavailable, doing, err)
	default:
		return fmt.Errorf("admin: %s: %w", doing, err)
	}
}

// away reports whether err says that the server is not there, or cannot serve.
func away(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		refused := func(class string) bool { return strings.HasPrefix(pgErr.Code, class) }
		return connecting(err) || slices.ContainsFunc(awayClasses[:], refused)
	}
	var netErr net.Error
	return connecting(err) || errors.As(err, &netErr) || pgconn.Timeout(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed)
}

// connecting reports whether err happened before any statement: there is no
// server, or it refused the connection.
func connecting(err error) bool {
	var connectErr *pgconn.ConnectError
	return errors.As(err, &connectErr)
}
