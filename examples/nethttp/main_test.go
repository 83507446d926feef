package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestOrders_repeatsAreReplayedMismatchesRefusedAndRefusalsRolledBack(t *testing.T) {
	pool := pgtest.New(t)
	handler, err := newHandler(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	send := func(key, body string) (status int, replayed bool, answer string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", string(text)
	}
	wantOrders := func(want int) {
		t.Helper()
		var got int
		if err := pool.QueryRow(t.Context(), "select count(*) from orders").Scan(&got); err != nil || got != want {
			t.Errorf("got %d orders (%v), want %d", got, err, want)
		}
	}

	status, replayed, first := send("k", `{"customer_id":123,"amount":1500}`)
	if status != 201 || replayed || !strings.Contains(first, `"customer_id":123,"amount":1500`) {
		t.Fatalf("the first got %d, replayed %v: %s", status, replayed, first)
	}
	if status, replayed, again := send("k", `{"customer_id":123,"amount":1500}`); status != 201 || !replayed || again != first {
		t.Errorf("the repeat got %d, replayed %v: %s, want %s", status, replayed, again, first)
	}
	if status, _, answer := send("k", `{"customer_id":123,"amount":1501}`); status != 409 || !strings.Contains(answer, `"code":"key-mismatch"`) {
		t.Errorf("another amount got %d: %s, want 409 key-mismatch", status, answer)
	}
	wantOrders(1)

	if status, _, answer := send("refused", `{"customer_id":123,"amount":-1}`); status != 422 {
		t.Errorf("a negative amount got %d: %s, want 422", status, answer)
	}
	wantOrders(1)
	if status, replayed, answer := send("refused", `{"customer_id":123,"amount":1}`); status != 201 || replayed {
		t.Errorf("the corrected order got %d, replayed %v: %s, want 201", status, replayed, answer)
	}
	wantOrders(2)
}
