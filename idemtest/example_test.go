package idemtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/idemtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "create table bookings (id bigint generated always as identity, slot text)")
	return err
}

func newShop(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /bookings", guard.Route(idemhttp.Route{Name: "POST /bookings"})(http.HandlerFunc(book)))
	return mux, nil
}

func book(w http.ResponseWriter, r *http.Request) {
	var id int64
	err := idem.Tx(r.Context()).QueryRow(r.Context(),
		"insert into bookings (slot) values ($1) returning id", r.FormValue("slot")).Scan(&id)
	if err != nil {
		http.Error(w, "try again", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%d}`, id)
}

func booking() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/bookings?slot=19:00", strings.NewReader(""))
	r.Header.Set("Idempotency-Key", "4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77")
	return r
}

func oneBooking(ctx context.Context, pool *pgxpool.Pool) (err error) {
	var n int
	if err = pool.QueryRow(ctx, "select count(*) from bookings").Scan(&n); err == nil && n != 1 {
		err = fmt.Errorf("%d bookings, want 1", n)
	}
	return err
}

func TestBookings_repeatedAreMadeOnce(t *testing.T) {
	db := idemtest.New(t, migrate)
	shop, err := newShop(t.Context(), db.Pool())
	if err != nil {
		t.Fatal(err)
	}
	if answer := idemtest.Repeat(t, shop, booking, 20); answer.Status != http.StatusCreated {
		t.Errorf("got %v, want 201", answer)
	}
}

func TestBookings_killedAreMadeOnce(t *testing.T) {
	idemtest.KillEverywhere(t, idemtest.Kill{Migrate: migrate, Handler: newShop, Request: booking, Check: oneBooking})
}

func migrateTill(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "create table payments (receipt text); create table charges (key text primary key)")
	return err
}

func newTill(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		return nil, err
	}
	route := guard.Route(idemhttp.Route{Name: "POST /payments", Lease: idemhttp.DefaultLease})
	return route(till{bank: idemtest.OutsideURL(ctx)}), nil
}

type till struct{ bank string }

func (t till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	charge := idem.Effect{Scope: "till", Key: "charge:order:1", Provider: idem.Keyed(24 * time.Hour)}
	receipt, err := idem.Call(r.Context(), charge, t.charge)
	if err == nil {
		_, err = idem.Tx(r.Context()).Exec(r.Context(), "insert into payments (receipt) values ($1)", receipt)
	}
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func (t till) charge(ctx context.Context, downstreamKey string) (receipt string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.bank+"/charges", strings.NewReader(`{"amount":1500}`))
	if err != nil {
		return "", err
	}
	r.Header.Set("Idempotency-Key", downstreamKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the bank answered %s", answer.Status)
	}
	return string(body), err
}

func newBank(_ context.Context, pool *pgxpool.Pool) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if _, err := pool.Exec(r.Context(), "insert into charges (key) values ($1) on conflict do nothing", key); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "receipt of ", key)
	}), nil
}

func payment() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(""))
	r.Header.Set("Idempotency-Key", "8d5f0f8e-62b7-4a58-9d0c-2f1f3c4f9c11")
	return r
}

func oneCharge(ctx context.Context, pool *pgxpool.Pool) (err error) {
	var charges, payments int
	err = pool.QueryRow(ctx, "select (select count(*) from charges), (select count(*) from payments)").Scan(&charges, &payments)
	if err == nil && (charges != 1 || payments != 1) {
		err = fmt.Errorf("%d charges and %d payments, want one of each", charges, payments)
	}
	return err
}

func TestPayments_killedAreChargedOnce(t *testing.T) {
	idemtest.KillEverywhere(t, idemtest.Kill{Migrate: migrateTill, Handler: newTill, Outside: newBank, Request: payment, Check: oneCharge})
}
