package idemhttp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// truncated are requests that end before their body does.
func truncated() map[string]string {
	const head = "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"
	sized := func(size int, sent string) string {
		return head + fmt.Sprintf("Content-Length: %d\r\n\r\n", size) + sent
	}
	chunks := head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body))
	return map[string]string{
		"half a body":              sized(len(body), body[:len(body)/2]),
		"no body at all":           sized(len(body), ""),
		"one byte short":           sized(len(body)+1, body),
		"a chunk cut off":          chunks + body[:len(body)/2],
		"chunks without an end":    chunks + body + "\r\n",
		"chunks that are not ones": chunks + body + "\r\nzz\r\n",
	}
}

func TestF5_aBodyCutOffRunsNothingAndClaimsNothing(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{})
	for name, request := range truncated() {
		t.Run(name, func(t *testing.T) {
			got := r.unqueried(func() reply { return r.wire(request) })
			r.want(got, 400, "body-incomplete")
			if !strings.Contains(got.body, `"retryable":true`) || !strings.Contains(got.body, `"safe_new_key":false`) {
				t.Errorf("the problem is %s", got.body)
			}
			before := r.outcomes()[idem.OutcomeReleased]
			r.unqueried(func() reply { // the same from a client that does not wait for an answer
				r.cut(request)
				eventually(t, "the end of the request", func() bool { return r.outcomes()[idem.OutcomeReleased] == before+1 })
				return reply{}
			})
		})
	}
	if n := runs.Load(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
	r.wantRows("select count(*) from idem.idempotency_keys", 0)
	r.want(r.send(post("/orders", "k", body)), 201, "") // nothing was claimed
	r.wantRows("select count(*) from orders", 1)
}
