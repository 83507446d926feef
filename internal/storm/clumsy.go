package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// tooLarge is the bytes of a body that no shop takes.
const tooLarge = 1<<20 + 1

// Clumsy is what came of requests that a shop has to refuse, by clients that make
// mistakes.
type Clumsy struct {
	Sent    int `json:"sent"`
	Refused int `json:"refused"` // with the right problem
}

// mistake is one such request, and the code of the problem that it has to be told.
type mistake struct {
	code   string
	keys   []string
	bearer string
	body   string
}

// mistakes are sent in good weather, so that each is refused for what it is.
func mistakes(m marks) []mistake {
	const good = `{"customer_id":1,"amount":1}`
	key := func(n int) string { return fmt.Sprintf("%s-clumsy-%d", m.key, n) }
	return []mistake{
		{"key-missing", nil, "Bearer demo-storm", good},
		{"key-invalid", []string{key(1), key(2)}, "Bearer demo-storm", good},
		{"key-invalid", []string{key(3) + ",and more"}, "Bearer demo-storm", good},
		{"unauthenticated", []string{key(4)}, "Bearer nobody", good},
		{"body-too-large", []string{key(5)}, "Bearer demo-storm", strings.Repeat("1", tooLarge)},
		{"order-invalid", []string{key(6)}, "Bearer demo-storm", `{"customer_id":1,"amount":-1}`},
	}
}

// blunder sends all of them to a shop, and each as long as none is there to answer.
func (n *network) blunder(ctx context.Context, m marks, patience time.Duration) (Clumsy, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: loopbackOnly}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: requestLimit}
	var c Clumsy
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, wrong := range mistakes(m) {
		c.Sent++
		code, err := wrong.send(ctx, client, n.url)
		if err != nil {
			return c, err
		}
		if code == wrong.code {
			c.Refused++
		}
	}
	return c, nil
}

// send returns the code of the problem that was answered; none is empty.
func (w mistake) send(ctx context.Context, client *http.Client, url string) (code string, err error) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(w.body))
		if err != nil {
			return "", err
		}
		r.Header["Idempotency-Key"] = w.keys
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", w.bearer)
		answer, err := client.Do(r)
		if err == nil {
			var problem struct {
				Code string `json:"code"`
			}
			_ = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&problem) // what is none has no code
			_ = answer.Body.Close()
			if answer.StatusCode < http.StatusInternalServerError {
				return problem.Code, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}
