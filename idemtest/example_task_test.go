package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type confirmation struct {
	Booking int64  `json:"booking"`
	Slot    string `json:"slot"`
}

var (
	confirm = queue.Define[confirmation]("booking.confirm", queue.Options{})
	remind  = queue.Define[confirmation]("booking.remind", queue.Options{})
)

func migrateLetters(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "create table letters (booking bigint, text text)")
	return err
}

func newWorker(ctx context.Context, pool *pgxpool.Pool) (*queue.Worker, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	w := queue.NewWorker(db, queue.Config{})
	confirm.Handle(w, sendConfirmation)
	remind.Handle(w, sendReminder)
	return w, nil
}

func sendConfirmation(ctx context.Context, tx pgx.Tx, c confirmation) error {
	if _, err := tx.Exec(ctx, "insert into letters values ($1, $2)", c.Booking, "See you at "+c.Slot); err != nil {
		return err
	}
	_, err := remind.EnqueueMany(ctx, tx, queue.Task[confirmation]{Key: fmt.Sprint("remind:", c.Booking), Payload: c, Delay: 24 * time.Hour})
	return err
}

func sendReminder(ctx context.Context, tx pgx.Tx, c confirmation) error {
	if c.Slot == "" {
		return errors.New("no slot")
	}
	_, err := tx.Exec(ctx, "insert into letters values ($1, $2)", c.Booking, "Do not forget: "+c.Slot)
	return err
}

func enqueueConfirmation(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := confirm.Enqueue(ctx, pool, "confirm:1", confirmation{Booking: 1, Slot: "19:00"})
	return err
}

func oneLetter(ctx context.Context, pool *pgxpool.Pool) (err error) {
	var n int
	if err = pool.QueryRow(ctx, "select count(*) from letters").Scan(&n); err == nil && n != 1 {
		err = fmt.Errorf("%d letters, want 1", n)
	}
	return err
}

func TestConfirmations_areFollowedByAReminder(t *testing.T) {
	db := idemtest.New(t, migrateLetters)
	if err := enqueueConfirmation(t.Context(), db.Pool()); err != nil {
		t.Fatal(err)
	}
	if got := idemtest.RunTask(t, db.Pool(), newWorker, confirm, "confirm:1"); got.Status != queue.StatusDone {
		t.Errorf("%v", got)
	}
	if c := idemtest.Enqueued(t, db.Pool(), remind, "remind:1"); c.Slot != "19:00" {
		t.Errorf("the reminder is for %q, want 19:00", c.Slot)
	}
	idemtest.MakeDue(t, db.Pool(), remind, "remind:1")
	if got := idemtest.RunTask(t, db.Pool(), newWorker, remind, "remind:1"); got.Err != nil {
		t.Errorf("%v", got)
	}
}

func TestConfirmations_killedAreSentOnce(t *testing.T) {
	idemtest.KillEverywhere(t, idemtest.Kill{Migrate: migrateLetters, Worker: newWorker, Enqueue: enqueueConfirmation, Check: oneLetter})
}

var refund = queue.Define[string]("payment.refund", queue.Options{Timeout: 10 * time.Second})

func newRefunder(ctx context.Context, pool *pgxpool.Pool) (*queue.Worker, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	w := queue.NewWorker(db, queue.Config{})
	bank := till{bank: idemtest.OutsideURL(ctx)}
	refund.HandleLeased(w, func(ctx context.Context, order string) error {
		back := idem.Effect{Scope: "till", Key: "refund:" + order, Provider: idem.Keyed(24 * time.Hour)}
		receipt, err := idem.Call(ctx, back, bank.charge)
		if err != nil {
			return err
		}
		_, err = idem.Tx(ctx).Exec(ctx, "insert into payments (receipt) values ($1)", receipt)
		return err
	})
	return w, nil
}

func enqueueRefund(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := refund.Enqueue(ctx, pool, "refund:1", "order:1")
	return err
}

func TestRefunds_killedAreMadeOnce(t *testing.T) {
	idemtest.KillEverywhere(t, idemtest.Kill{Migrate: migrateTill, Worker: newRefunder, Outside: newBank, Enqueue: enqueueRefund, Check: oneCharge})
}
