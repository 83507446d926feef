package idemclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"

	"github.com/idem-go/idem/idemclient"
)

// flaky is a server whose first answer is lost.
func flaky() *httptest.Server {
	var first string
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			first = r.Header.Get("Idempotency-Key")
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "the same key again: ", r.Header.Get("Idempotency-Key") == first)
	}))
	s.Start()
	return s
}

// The first answer is lost on the way. The transport asks again, with the same key
// and the same body.
func ExampleTransport() {
	server := flaky()
	defer server.Close()
	transport, err := idemclient.New(idemclient.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()

	resp, err := client.Post(server.URL, "application/json", strings.NewReader(`{"amount":1500}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	sent, _ := idemclient.SentFrom(resp)
	fmt.Println(resp.StatusCode, string(body), "- attempts:", sent.Attempts)
	// Output: 201 the same key again: true - attempts: 2
}

// An intent with a name has one key in every process that opens the store, until
// the program has recorded what came of it.
func ExampleWithIntent() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	var keys []string
	for range 2 { // the second time as after a restart
		store, err := idemclient.OpenFileStore(dir)
		if err != nil {
			fmt.Println(err)
			return
		}
		transport, err := idemclient.New(idemclient.Config{Store: store})
		if err != nil {
			fmt.Println(err)
			return
		}
		ctx := idemclient.WithIntent(context.Background(), "order:42:pay")
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(`{"amount":1500}`))
		client := &http.Client{Transport: transport}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		sent, _ := idemclient.SentFrom(resp)
		keys = append(keys, sent.Key)
	}
	fmt.Println("one key:", keys[0] == keys[1])
	// Output: one key: true
}

// Inside an effect the downstream key travels in the context to whatever sends the
// request, and is the same in every attempt at the effect.
func ExampleWithKey() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("the bank sees", r.Header.Get("Idempotency-Key"))
	}))
	defer server.Close()
	transport, err := idemclient.New(idemclient.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()

	charge := func(ctx context.Context, downstreamKey string) error {
		ctx = idemclient.WithKey(ctx, downstreamKey)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(`{"amount":1500}`))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	for range 2 {
		if err := charge(context.Background(), "charge-payment-7"); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// the bank sees charge-payment-7
	// the bank sees charge-payment-7
}

// A problem says whether a new key could double anything. It is the caller who
// makes one.
func ExampleProblemFrom() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"code":"key-mismatch","retryable":false,"safe_new_key":false}`)
	}))
	defer server.Close()
	transport, err := idemclient.New(idemclient.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()

	resp, err := client.Post(server.URL, "application/json", strings.NewReader(`{}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if p, ok := idemclient.ProblemFrom(resp); ok {
		fmt.Println(p)
		fmt.Println(p.Code, p.Retryable, p.SafeNewKey)
	}
	// Output:
	// idemclient: the server answered 409 key-mismatch; a new key is not safe
	// key-mismatch false false
}

// Without an answer the error has the key: with it, the program can ask again
// later, and so can somebody else.
func ExampleError() {
	transport, err := idemclient.New(idemclient.Config{Attempts: 1, Base: base(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF // your network
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	ctx := idemclient.WithKey(context.Background(), "order-42")
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.example/orders", strings.NewReader(`{}`))
	_, err = client.Do(req)
	var unknown *idemclient.Error
	if errors.As(err, &unknown) {
		fmt.Println(unknown.Key, unknown.Attempts, errors.Is(err, io.ErrUnexpectedEOF))
	}
	// Output: order-42 1 true
}
