package queue_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// matrixCallTimeout is that of one call of the bank.
const matrixCallTimeout = 3 * time.Second

// matrixTimes are how long a handler may take, and a lease. A worker that is dead, or may
// be taken for dead, has a lease that is ended when it is struck, and long so that it is
// not over before; one that lives has one that it must renew. A transaction of a worker
// that is frozen holds the task for 5 s longer than the handler's time.
func matrixTimes(step, fault string) (timeout, lease time.Duration) {
	switch {
	case strings.HasPrefix(step, "heartbeat"):
		return 20 * time.Second, 6 * time.Second
	case fault == faultStop, fault == faultHole:
		return 5 * time.Second, 30 * time.Second
	case fault == faultKill:
		return 20 * time.Second, 30 * time.Second
	}
	return 10 * time.Second, 6 * time.Second
}

// matrixTables are the program's.
const matrixTables = `create table matrix_rows (task text not null); create table matrix_charges (key text unique, task text not null)`

// matrixTask is the payload. The victim is what is stopped and struck; the other waits
// beside it.
type matrixTask struct {
	Name   string `json:"name"`
	Victim bool   `json:"victim"`
}

// matrixKind is the kind of one way in one cell, which has a queue of its own.
func matrixKind(c matrixOrders, way matrixWay) *queue.Kind[matrixTask] {
	timeout, lease := matrixTimes(c.Step, c.Fault)
	return queue.Define[matrixTask](way.name, queue.Options{Queue: c.Cell + "/" + way.name, Lease: lease,
		Timeout: timeout, Backoff: 100 * time.Millisecond, MaxBackoff: 200 * time.Millisecond})
}

// matrixHandlers are the handlers of one way.
type matrixHandlers struct {
	bank string                   // its URL
	at   func(string, matrixTask) // told where a handler is
}

func (h matrixHandlers) handle(w *queue.Worker, c matrixOrders, way matrixWay) {
	kind := matrixKind(c, way)
	switch way.name {
	case inTx:
		kind.Handle(w, func(ctx context.Context, tx pgx.Tx, t matrixTask) error { return h.work(ctx, t, h.row) })
	case onLease:
		kind.HandleLeased(w, func(ctx context.Context, t matrixTask) error {
			return h.work(ctx, t, h.charge, h.row)
		})
	case onLeaseOnly:
		kind.HandleLeased(w, func(ctx context.Context, t matrixTask) error { return h.work(ctx, t, h.charge) })
	}
}

// work does the parts, and says where it is: behind the first of them the work is done
// that cannot be undone, or that is undone with the transaction.
func (h matrixHandlers) work(ctx context.Context, t matrixTask, parts ...func(context.Context, matrixTask) error) error {
	h.at(placeBegun, t)
	for i, part := range parts {
		if err := part(ctx, t); err != nil {
			return err
		}
		if i == 0 {
			h.at(placeWorked, t)
		}
	}
	h.at(placeEnded, t)
	return nil
}

func (h matrixHandlers) row(ctx context.Context, t matrixTask) error {
	_, err := idem.Tx(ctx).Exec(ctx, "insert into matrix_rows (task) values ($1)", t.Name)
	return err
}

func (h matrixHandlers) charge(ctx context.Context, t matrixTask) error {
	e := idem.Effect{Scope: "matrix", Key: "charge:" + t.Name, Provider: idem.Keyed(time.Hour), Timeout: matrixCallTimeout}
	_, err := idem.Call(ctx, e, func(ctx context.Context, key string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.bank, strings.NewReader(t.Name))
		if err != nil {
			return "", err
		}
		r.Header.Set("Idempotency-Key", key)
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		receipt, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("the bank says %s", answer.Status)
		}
		return string(receipt), err
	})
	return err
}

// matrixBank charges once per key, and keeps that in the test's database.
func matrixBank(pool *pgxpool.Pool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = pool.Exec(context.WithoutCancel(r.Context()), "insert into matrix_charges (key, task) values ($1, $2) on conflict do nothing",
				r.Header.Get("Idempotency-Key"), string(name))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "charged")
	})
}
