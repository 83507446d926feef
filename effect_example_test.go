package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// Points for an order are booked once, whoever books them again: another request, or
// a script that books all of a day.
func ExampleApply() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	if _, err := pool.Exec(ctx, "create table points (customer text, n int)"); err != nil {
		fmt.Println(err)
		return
	}
	book := func(ctx context.Context, tx pgx.Tx) (int, error) {
		_, err := tx.Exec(ctx, "insert into points (customer, n) values ('ana', 15)")
		return 15, err
	}
	effect := idem.Effect{Scope: "shop", Key: "points:order:17", Input: 1500}
	for range 2 {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			points, applied, err := idem.Apply(ctx, tx, effect, book)
			fmt.Println(points, applied)
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 15 true
	// 15 false
}

// exampleBank stands for another system that honours keys: it remembers what it has charged.
type exampleBank struct{ charges map[string]string }

func (b *exampleBank) charge(key string) (id string, err error) {
	if id, charged := b.charges[key]; charged {
		return id, nil
	}
	b.charges[key] = fmt.Sprintf("ch_%d", len(b.charges)+1)
	return "", errors.New("the bank has charged and hung up")
}

// The bank charges and hangs up before it answers. Since it honours keys, Call asks
// again with the same one, and finds the charge that was made.
func ExampleCall() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &exampleBank{charges: make(map[string]string)}
	pay := guard.Route(idemhttp.Route{Name: "POST /payments", Lease: idemhttp.DefaultLease})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			charge := idem.Effect{Scope: "shop", Key: "charge:payment:17", Input: 1500, Provider: idem.Keyed(23 * time.Hour)}
			id, err := idem.Call(r.Context(), charge, func(_ context.Context, key string) (string, error) {
				return b.charge(key)
			})
			if err != nil {
				http.Error(w, "try again", http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, id)
		}))
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	pay.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body, len(b.charges))
	// Output: 201 ch_1 1
}
