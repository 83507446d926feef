// Package downstream carries, in a context, what a request to another service is to
// be sent with, its key and its trace, so that package idem can set it and idemclient
// can read it without either knowing the other.
package downstream

import "context"

type contextKey struct{}

// With returns a context whose requests carry key.
func With(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// From returns the key that ctx carries, if any.
func From(ctx context.Context) (string, bool) {
	key, ok := ctx.Value(contextKey{}).(string)
	return key, ok
}
