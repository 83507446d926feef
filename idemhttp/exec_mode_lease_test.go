package idemhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// A leased request with an effect before its final transaction, two calls and an
// effect within it, in every mode that a pool's URL can name.
func TestExecModes_leasesAndEffectsAreTheSameInAll(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := rigOn(t, pgtest.Pool(t, pgtest.Direct(t, pgtest.NewURL(t))+"&default_query_exec_mode="+mode))
			r.handle("/pay", idemhttp.Route{Lease: time.Second}, func(w http.ResponseWriter, req *http.Request) {
				if err := everyEffect(req.Context(), r); err != nil {
					t.Error(err)
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(receipt{1})
			})
			r.handle("/large", idemhttp.Route{Lease: time.Second, MaxStored: 1}, takeSlot)
			r.handle("/refuse", idemhttp.Route{Lease: time.Second}, takeSlot)
			r.serve()
			for range 2 {
				for _, key := range []string{"a", "b"} { // the second finds every effect applied
					r.want(r.send(post("/pay", key, "{}")), 201, "")
				}
			}
			r.wantRows("select count(*) from orders where amount = 7", 2)
			r.wantRows("select count(*) from idem.applied_effects where status = 'applied'", 3)
			r.wantRows("select count(*) from idem.applied_effects where status = 'absent'", 1)
			r.want(r.send(post("/large?slot=a", "large", "{}")), 201, "")
			r.want(r.send(post("/large?slot=a", "large", "{}")), 409, "answer-withheld")
			for range 2 {
				r.want(r.send(post("/refuse?slot=a", "refused", "{}")), 409, "")
			}
		})
	}
}

// everyEffect does one of each, and lives until its lease was renewed.
func everyEffect(ctx context.Context, r *rig) error {
	own := func(ctx context.Context, tx pgx.Tx) (int, error) {
		_, err := tx.Exec(ctx, "insert into orders (customer, amount) values (1, 7)")
		return 7, err
	}
	before := idem.Effect{Scope: "shop", Key: "before", Input: map[string]string{"a": `b\'"`}}
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		_, _, err := idem.Apply(ctx, tx, before, own)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := idem.Call(ctx, charge(), func(context.Context, string) (receipt, error) {
		return receipt{1}, r.untilRenewed(ctx)
	}); err != nil {
		return err
	}
	refused := errors.New(`refused: \'"`)
	_, err = idem.Call(ctx, idem.Effect{Scope: "shop", Key: "refused"}, func(context.Context, string) (receipt, error) {
		return receipt{}, idem.NotApplied(refused)
	})
	if !errors.Is(err, refused) {
		return errors.Join(err, errors.New("the refusal was not returned"))
	}
	_, _, err = idem.Apply(ctx, idem.Tx(ctx), idem.Effect{Scope: "shop", Key: "within"}, own)
	return err
}

// untilRenewed waits until a lease was renewed.
func (r *rig) untilRenewed(ctx context.Context) error {
	const latest = "select max(lease_until)::text from idem.idempotency_keys where state = 'claimed'"
	var first, now string
	if err := r.pool.QueryRow(ctx, latest).Scan(&first); err != nil {
		return err
	}
	for now = first; now == first; {
		if err := r.pool.QueryRow(ctx, latest).Scan(&now); err != nil {
			return err
		}
	}
	return nil
}
