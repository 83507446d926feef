package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bankOfTests refunds payment 17 and hangs up, refuses 19, is closed for
// whoever asks for 20, and refunds any other.
type bankOfTests struct {
	mu      sync.Mutex
	refunds map[string]string // by key
	hungUp  bool
}

func (b *bankOfTests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	payment, key := r.PathValue("payment"), r.Header.Get("Idempotency-Key")
	switch payment {
	case "19":
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	case "20":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	b.refunds[key] = payment
	if payment == "17" && !b.hungUp {
		b.hungUp = true
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "%q", "re_"+payment)
}

func TestRefunds_eachIsAskedForOnceWhateverTheBankDoes(t *testing.T) {
	url := pgtest.NewURL(t)
	pool := pgtest.Pool(t, url)
	b := &bankOfTests{refunds: make(map[string]string)}
	mux := http.NewServeMux()
	mux.Handle("POST /refunds/{payment}", b)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	want := "17 done, 18 done, 19 failed, 20 pending later"
	for _, payments := range [][]string{{"17", "18", "19", "20"}, {"17", "18", "19", "20", "21"}} { // a second run finds the first four
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, url, server.URL, payments) }()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var got string
			err := pool.QueryRow(t.Context(), `select coalesce(string_agg(right(task_key, 2) || ' ' || status ||
				case when status = 'pending' and run_at > clock_timestamp() + interval '50 minutes' then ' later' else '' end, ', ' order by task_key), '') from idem.tasks`).Scan(&got)
			if err == nil && got == want {
				break
			}
			if time.Now().After(deadline) {
				stop()
				t.Fatalf("got %s (%v); run: %v", got, err, <-ended)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		want += ", 21 done"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.refunds) != 3 {
		t.Errorf("the bank has refunded %v, want 17, 18 and 21 under a key each", b.refunds)
	}
	var refunds string
	if err := pool.QueryRow(t.Context(), "select string_agg(payment || ' ' || bank_id, ', ' order by payment) from refunds").Scan(&refunds); err != nil || refunds != "17 re_17, 18 re_18, 21 re_21" {
		t.Errorf("got %s (%v), want those three", refunds, err)
	}
}
