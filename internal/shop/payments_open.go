package shop

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
)

// effectScope is whose effects they are: the shop's, whoever pays.
const effectScope = "shop"

// intent is one request to pay an order: a key of a principal.
type intent struct {
	who, key string
	order    order
	card     string
}

// effect is the making of the intent's own payment. A principal has no colon in it, so
// that no two intents share a key.
func (in intent) effect() idem.Effect {
	return idem.Effect{
		Scope: effectScope,
		Key:   fmt.Sprintf("payment:order:%d:%s:%s", in.order.ID, in.who, in.key),
		Input: newPayment{in.order.ID, in.card},
	}
}

// errStanding says that the order has a payment that is another's.
var errStanding = errors.New("shop: the order has a payment")

// openPayment returns the intent's own payment, made now or by an earlier run, or the
// one that stands in its way. It is committed before it is charged: whoever comes
// next, with whatever key, finds it.
func (s *Shop) openPayment(ctx context.Context, in intent) (payment, error) {
	for {
		id, err := s.makePayment(ctx, in)
		if err == nil {
			p, err := s.readPayment(ctx, "payment_read", id)
			p.mine = true
			return p, err
		}
		if !errors.Is(err, errStanding) {
			return payment{}, err
		}
		p, err := s.readPayment(ctx, "payment_standing", in.order.ID)
		if !errors.Is(err, pgx.ErrNoRows) { // or it has been declined meanwhile
			return p, err
		}
	}
}

func (s *Shop) makePayment(ctx context.Context, in intent) (id int64, err error) {
	err = s.inOwnTx(ctx, func(tx pgx.Tx) error {
		id, _, err = idem.Apply(ctx, tx, in.effect(), func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
			err = tx.QueryRow(ctx, statement("payment_insert"), in.order.ID, in.who, in.card, in.order.Amount).Scan(&id)
			if errors.Is(err, pgx.ErrNoRows) {
				err = errStanding
			}
			return id, err
		})
		return err
	})
	return id, err
}

func (s *Shop) readPayment(ctx context.Context, name string, id int64) (p payment, err error) {
	err = s.pool.QueryRow(ctx, statement(name), id).Scan(&p.ID, &p.OrderID, &p.Amount, &p.Status, &p.card)
	return p, err
}

// inOwnTx runs fn in a transaction that commits before the final one. What it writes
// are effects.
func (s *Shop) inOwnTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statement("limits")); err != nil {
			return err
		}
		return fn(tx)
	})
}
