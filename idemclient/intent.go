package idemclient

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem/internal/downstream"
)

type (
	intentName   struct{}
	deliveryNote struct{}
)

// WithIntent returns a context whose requests belong to the intent called name,
// for example "order:42:pay": 1 to MaxIntent bytes of valid UTF-8, stable over
// restarts, of this one intent only, without secrets. All of them carry the key
// that Config.Store keeps under that name; it is minted by the first. One intent
// is one request: another request under the same name is refused by the server as
// a mismatch. When what came of it is recorded, Store.Forget ends the intent.
func WithIntent(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, intentName{}, name)
}

// WithKey returns a context whose requests carry key: 1 to MaxKey bytes of
// visible ASCII. It serves programs that keep the keys of their intents themselves.
// The context that idem.Call gives to its function carries the downstream key of its
// effect in the same way, so that a request sent by any depth of code is repeated
// under that key by whoever runs the effect again. It wins over WithIntent, whichever
// is inside the other: the effect's key outlives this machine's store.
func WithKey(ctx context.Context, key string) context.Context {
	return downstream.With(ctx, key)
}

// key decides the key of req's intent, and the header's value for it. The Store
// is asked within ctx.
func (t *Transport) key(ctx context.Context, req *http.Request) (key, value string, err error) {
	if carried := req.Header.Values(t.config.Header); len(carried) > 0 {
		if len(carried) > 1 || carried[0] == "" {
			return "", "", fmt.Errorf("%w: the request carries %d values in its %s header; set one that is not empty, or none",
				ErrKeyInvalid, len(carried), t.config.Header)
		}
		return bareKey(carried[0]), carried[0], nil
	}
	if key, err = t.intentKey(ctx, req); err != nil {
		return "", "", err
	}
	return key, headerValue(key, t.config.Quoted), nil
}

func (t *Transport) intentKey(ctx context.Context, req *http.Request) (string, error) {
	if key, ok := downstream.From(ctx); ok {
		return key, validKey(key)
	}
	if name, ok := ctx.Value(intentName{}).(string); ok {
		return t.keptKey(ctx, name)
	}
	if sent, ok := SentFrom(req.Response); ok { // a redirect goes on with the intent of what it answers
		return sent.Key, validKey(sent.Key)
	}
	return NewKey()
}

// keptKey is the key that the Store keeps for an intent, minted if there is none.
func (t *Transport) keptKey(ctx context.Context, name string) (string, error) {
	if err := validIntent(name); err != nil {
		return "", err
	}
	if t.config.Store == nil {
		return "", ErrNoStore
	}
	minted, err := NewKey()
	if err != nil {
		return "", err
	}
	key, err := t.config.Store.Keep(ctx, name, minted)
	if err != nil {
		return "", fmt.Errorf("the key could not be kept: %w", err)
	}
	if err := validKey(key); err != nil {
		return "", fmt.Errorf("%w (from the store)", err)
	}
	if age(key, time.Now()) > t.config.MaxAge-t.config.Total {
		return "", ErrKeyTooOld
	}
	return key, nil
}
