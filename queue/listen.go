package queue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// listenPause is how long a listener waits before it connects again, at most.
	listenPause = 5 * time.Second
	// listenAlive is for how many times Config.Poll a connection may be silent before it is
	// asked whether it is still there: a half-open one says nothing by itself.
	listenAlive = 10
)

// listen wakes the lanes when it is told to, until ctx ends. Its connection is made again
// whenever it dies; meanwhile the lanes poll.
func (w *Worker) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		w.trouble(ctx, "", "listen", err)
		pause(ctx, listenPause/2+rand.N(listenPause/2))
	}
}

// listenOnce listens on one connection until it dies.
func (w *Worker) listenOnce(ctx context.Context) error {
	conn, err := w.listener(ctx)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	for _, l := range w.lanes {
		l.wake() // for what was told before
	}
	for {
		n, err := heard(ctx, conn, listenAlive*w.poll())
		switch {
		case err != nil:
			return err
		case n == nil: // it is silent, and alive
		case n.Channel == cancelChannel:
			signal(w.beat.kick)
		case w.lanes[n.Payload] != nil:
			w.lanes[n.Payload].wake()
		}
	}
}

// cancelChannel is told when somebody asks for the cancellation of a running task.
const cancelChannel = "idem_cancel"

func (w *Worker) listener(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenPause)
	defer cancel()
	conn, err := connect(ctx, w.db)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{tasks.Listen, tasks.ListenCancel} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			closeQuietly(conn)
			return nil, err
		}
	}
	return conn, nil
}

// heard is the next notification; nil if there was none for a while, and the connection is
// known to live.
func heard(ctx context.Context, conn *pgx.Conn, silence time.Duration) (*pgconn.Notification, error) {
	waiting, cancel := context.WithTimeout(ctx, silence)
	n, err := conn.WaitForNotification(waiting)
	silent := waiting.Err() != nil && ctx.Err() == nil
	cancel()
	if err == nil || !silent || conn.IsClosed() {
		return n, err
	}
	asking, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	return nil, conn.Ping(asking)
}
