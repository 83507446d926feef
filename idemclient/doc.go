// Package idemclient is the client's side: an http.RoundTripper that names every
// intent with one key, sends that key with every repeat, and repeats where the
// answer says that it may. It imports no database.
//
//	transport, err := idemclient.New(idemclient.Config{Store: store})
//	client := &http.Client{Transport: transport}
//	req, err := http.NewRequestWithContext(idemclient.WithIntent(ctx, "order:42:pay"), "POST", url, body)
//	resp, err := client.Do(req)
//
// An intent is one thing that shall happen once. It gets its key, a UUIDv7, from
// the first of these that applies:
//
//   - the request's own Idempotency-Key header, which is kept as it is;
//   - WithKey: the downstream key of the effect that the code is called in;
//   - WithIntent: a name under which the Store keeps the key before the first byte
//     is sent, so that a client that is killed finds it again;
//   - else the request is an intent of its own, which goes on through redirects.
//     Its key ends with the call: whoever calls again after an error makes a new
//     intent, unless the key is taken from the Error and handed to WithKey.
//
// The transport never makes a second key for an intent. Whether the caller may
// is told by Problem.SafeNewKey.
package idemclient
