package idemhttp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/jackc/pgx/v5"
)

const (
	// crashLease is the shortest there is.
	crashLease = time.Second
	// crashLimit is the handler's, of which a server that is frozen in its final
	// transaction holds the key for 5 s more.
	crashLimit = 5 * time.Second
	// crashTimeout is that of one call: shorter, so that there is time for another, and
	// longer than a step is held.
	crashTimeout = 2500 * time.Millisecond
)

// payment is the body of a request.
type payment struct {
	Order string `json:"order"`
	Card  string `json:"card"`
	Bank  string `json:"bank"` // where the bank is, without whatever is between
}

func (p payment) charge() bank.Charge {
	return bank.Charge{Reference: "charge:order:" + p.Order, Amount: 1500, Card: p.Card}
}

func (p payment) effect() idem.Effect {
	e := idem.Effect{Scope: "shop", Key: p.charge().Reference, Input: p.charge(), Timeout: crashTimeout}
	if p.Card != keylessCard {
		e.Provider = idem.Keyed(time.Hour)
	}
	return e
}

const (
	keyedCard   = "tok_ok"
	keylessCard = "tok_keyless"
)

// paid is the answer. It differs from run to run, so that one that takes the place of
// another shows.
type paid struct {
	bank.Receipt
	Run string `json:"run"`
}

// cashier takes payments: it charges the bank once per order, whatever the keys, and
// posts what it has charged.
type cashier struct {
	bank func(payment) string // its URL
	at   func(step string)    // told where the handler is
}

func (c cashier) route(wait time.Duration) idemhttp.Route {
	return idemhttp.Route{Name: "POST /payments", Lease: crashLease, Limit: crashLimit, Wait: wait}
}

func (c cashier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.at(stepClaimKnown)
	if err := c.pay(w, r); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
	c.at(stepRowsWritten)
}

func (c cashier) pay(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	var p payment
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		return err
	}
	receipt, err := idem.Call(ctx, p.effect(), func(ctx context.Context, key string) (bank.Receipt, error) {
		c.at(stepIntentionKnown)
		client := bank.Client{URL: c.bank(p)}
		receipt, err := client.Charge(ctx, key, p.charge())
		if err == nil {
			c.at(stepCallAnswered)
		}
		return receipt, err
	})
	if err != nil {
		return err
	}
	c.at(stepResultKnown)
	idem.AfterCommit(ctx, func(context.Context) { c.at(stepCommitKnown) })
	posting := idem.Effect{Scope: "shop", Key: "post:order:" + p.Order}
	_, _, err = idem.Apply(ctx, idem.Tx(ctx), posting, func(ctx context.Context, tx pgx.Tx) (string, error) {
		_, err := tx.Exec(ctx, "insert into crash_postings (order_name, amount) values ($1, $2)", p.Order, receipt.Amount)
		return receipt.ID, err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(paid{receipt, rand.Text()})
}
