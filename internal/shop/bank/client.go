package bank

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/go-json-experiment/json"
)

var (
	// ErrRefused is proof that a request moved no money: the bank said so, or could not
	// be reached at all. Every other error of Charge and Refund leaves it unknown.
	//
	// Where the bank said so, no earlier request with the same key has moved anything
	// either, since it looks at the key first; unless the card ignores keys.
	ErrRefused = errors.New("bank: no money was moved")
	// ErrUnreachable is an ErrRefused for which the bank was never asked. It is
	// proof about this request, and none about an earlier one with the same key.
	ErrUnreachable = fmt.Errorf("%w: the bank cannot be reached", ErrRefused)
)

// maxAnswer bounds what is read of an answer, in bytes: a full list fits.
const maxAnswer = 1 << 20

// Client speaks to a bank. How long it waits is the context's to say.
type Client struct {
	URL string // such as http://127.0.0.1:8001
	// HTTP makes the requests. Nil means http.DefaultClient.
	HTTP *http.Client
}

// Charge charges a card, once per key unless the card ignores keys. A decline is a
// receipt, not an error. errors.Is(err, ErrRefused) is proof that this request
// charged nothing; after any other error nobody knows.
func (c *Client) Charge(ctx context.Context, key string, charge Charge) (Receipt, error) {
	return c.move(ctx, key, "/charges", charge, func(r Receipt) bool { return r.demand() == demand{Charge: charge} })
}

// Refund gives the money of a charge back, as Charge takes it: once per key unless the
// charge's card ignores keys, and with the same errors.
func (c *Client) Refund(ctx context.Context, key string, refund Refund) (Receipt, error) {
	return c.move(ctx, key, "/refunds", refund, func(r Receipt) bool { return r.refund() == refund })
}

// move asks for what moves money; is tells its receipt from another's.
func (c *Client) move(ctx context.Context, key, path string, asked any, is func(Receipt) bool) (Receipt, error) {
	// Something may have been sent on any connection that was had.
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	header := http.Header{keyHeader: {key}}
	status, body, err := c.send(httptrace.WithClientTrace(ctx, trace), http.MethodPost, path, header, asked)
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial" && !connected.Load():
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case err != nil:
		return Receipt{}, fmt.Errorf("bank: it is not known whether money was moved: %w", err)
	case status == http.StatusCreated || status == http.StatusOK:
		return readReceipt(body, is)
	}
	return Receipt{}, readRefusal(status, body)
}

// readReceipt reads what the bank says of what was asked for.
func readReceipt(body []byte, is func(Receipt) bool) (Receipt, error) {
	var r Receipt
	err := json.Unmarshal(body, &r)
	if err == nil {
		err = r.check()
	}
	if err == nil && !is(r) {
		err = errors.New("it is another's")
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("bank: the receipt cannot be right: %w", err)
	}
	return r, nil
}

// readRefusal makes an error of an answer that is no receipt. Only the bank's own
// word is proof: a status alone may come from something before it.
func readRefusal(status int, body []byte) error {
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil || r.Code == "" {
		return fmt.Errorf("bank: the status %d, and not in the bank's words", status)
	}
	if status >= 400 && status < 500 && r.Charged != nil && !*r.Charged {
		return fmt.Errorf("%w: %s: %s", ErrRefused, r.Code, r.Detail)
	}
	return fmt.Errorf("bank: %s: %s", r.Code, r.Detail)
}

// Find returns the charges on record with a reference, the oldest first, at most 1000.
// What is under way is not there yet: absence counts only when nothing can be.
func (c *Client) Find(ctx context.Context, reference string) ([]Receipt, error) {
	var l list
	err := c.ask(ctx, http.MethodGet, "/charges?reference="+url.QueryEscape(reference), nil, &l)
	if err != nil || l.Charges == nil {
		return nil, err
	}
	return *l.Charges, nil
}

// FindRefunds is Find for refunds.
func (c *Client) FindRefunds(ctx context.Context, reference string) ([]Receipt, error) {
	var l list
	err := c.ask(ctx, http.MethodGet, "/refunds?reference="+url.QueryEscape(reference), nil, &l)
	if err != nil || l.Refunds == nil {
		return nil, err
	}
	return *l.Refunds, nil
}

// Summary returns what the log adds up to.
func (c *Client) Summary(ctx context.Context) (s Summary, err error) {
	return s, c.ask(ctx, http.MethodGet, "/summary", nil, &s)
}

// SetFaults sets the bank's faults, instead of those so far.
func (c *Client) SetFaults(ctx context.Context, f Faults) error {
	return c.ask(ctx, http.MethodPost, "/faults", f, &f)
}

// ask is for everything but money.
func (c *Client) ask(ctx context.Context, method, path string, send, receive any) error {
	status, body, err := c.send(ctx, method, path, http.Header{}, send)
	switch {
	case err != nil:
		return fmt.Errorf("bank: ask: %w", err)
	case status != http.StatusOK:
		return readRefusal(status, body)
	}
	if err := json.Unmarshal(body, receive); err != nil {
		return fmt.Errorf("bank: the answer cannot be read: %w", err)
	}
	return nil
}

// send makes one request, and never a second one that its caller does not see.
//
// Go's transport sends a request again by itself if the connection breaks that it
// had kept from an earlier one, and if it holds the request to be idempotent, as
// it does any with the header Idempotency-Key. With a card that ignores keys that
// is a second charge; with the others it hides a lost reply. It cannot where
// there is no GetBody to make the body from again. Nor is there an old connection
// to break, since every request has its own: otherwise a bank that was started
// again would leave charges unknown that were never sent.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, v any) (status int, body []byte, err error) {
	var content io.Reader
	if v != nil {
		text, err := json.Marshal(v)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, content)
	if err != nil {
		return 0, nil, err
	}
	req.Header, req.Close, req.GetBody = header, true, nil
	once := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.HTTP != nil {
		once.Transport, once.Timeout = c.HTTP.Transport, c.HTTP.Timeout
	}
	answer, err := once.Do(req)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, body, errors.Join(err, answer.Body.Close())
}
