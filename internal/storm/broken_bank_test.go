package storm_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/idem-go/idem/internal/shop/bank"
)

// brokenBanks are the ways to break the bank: what it does with a charge or a refund
// before it makes it.
func brokenBanks() map[string]func(bankURL string, r *http.Request, body []byte) error {
	return map[string]func(bankURL string, r *http.Request, body []byte) error{
		"charging and refunding twice": moveToo,
		"charging for nothing": func(bankURL string, r *http.Request, body []byte) error {
			if r.URL.Path != "/charges" {
				return nil
			}
			return moveToo(bankURL, r, bytes.Replace(body, []byte(`"charge:`), []byte(`"nothing:`), 1))
		},
	}
}

// moveToo sends a charge or a refund under a key of its own.
func moveToo(bankURL string, r *http.Request, body []byte) error {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, bankURL+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	out.Header = r.Header.Clone()
	out.Header.Set("Idempotency-Key", r.Header.Get("Idempotency-Key")+"-too")
	w, err := http.DefaultClient.Do(out)
	if err != nil {
		return err
	}
	return w.Body.Close()
}

// serveBank is the life of the bank's process. A broken one stands in front of a bank
// that is not.
func serveBank(how string, cfg bank.Config) error {
	change, broken := brokenBanks()[how]
	if !broken {
		return bank.Child(context.Background(), os.Stdin, os.Stdout, cfg)
	}
	ln, err := net.Listen("tcp", cmp.Or(cfg.Listen, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	cfg.Listen = ""
	behind, err := bank.Start(cfg)
	if err != nil {
		return err
	}
	to, err := url.Parse(behind.URL)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: inFrontOf(httputil.NewSingleHostReverseProxy(to), behind.URL, change)}
	go func() { _ = server.Serve(ln) }() // closed with stdin
	fmt.Printf("{\"addr\":%q}\n", ln.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin) // its end says all
	_ = server.Close()
	return behind.Stop()
}

func inFrontOf(next http.Handler, bankURL string, change func(string, *http.Request, []byte) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && (r.URL.Path == "/charges" || r.URL.Path == "/refunds") {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				_ = change(bankURL, r, body) // a lost reply is no news
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}
