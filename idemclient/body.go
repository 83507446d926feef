package idemclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// payload is a request's body for any number of attempts.
type payload struct {
	open   func() (io.ReadCloser, error) // a new reader from the first byte on; nil: no body
	length int64                         // http.Request.ContentLength
	once   bool                          // open works only once
}

// payload takes over req's body: it is closed on an error, and by the attempts
// otherwise.
func (t *Transport) payload(ctx context.Context, req *http.Request) (payload, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return payload{}, nil
	case req.GetBody != nil:
		closeBody(req) // every attempt gets its own
		return payload{open: req.GetBody, length: req.ContentLength}, nil
	case req.ContentLength > t.config.MaxBody:
		return streamed(req, req.Body), nil
	}
	// A body that blocks is closed when its time is over, which ends the read; the
	// standard transport does the same.
	stop := context.AfterFunc(ctx, func() { closeBody(req) })
	data, err := io.ReadAll(io.LimitReader(req.Body, t.config.MaxBody+1))
	if !stop() {
		return payload{}, ctx.Err()
	}
	if err == nil && int64(len(data)) > t.config.MaxBody {
		rest := &prefixed{Reader: io.MultiReader(bytes.NewReader(data), req.Body), Closer: req.Body}
		return streamed(req, rest), nil
	}
	closeBody(req)
	switch {
	case err != nil:
		return payload{}, fmt.Errorf("the body cannot be read: %w", err)
	case req.ContentLength > 0 && int64(len(data)) != req.ContentLength:
		return payload{}, fmt.Errorf("the body has %d bytes, but ContentLength is %d", len(data), req.ContentLength)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	if len(data) == 0 {
		open = nil
	}
	length := int64(len(data))
	if req.Trailer != nil {
		length = -1 // trailers travel behind chunks only
	}
	return payload{open: open, length: length}, nil
}

// streamed is a body that passes through once.
func streamed(req *http.Request, body io.ReadCloser) payload {
	return payload{once: true, length: req.ContentLength, open: func() (io.ReadCloser, error) { return body, nil }}
}

// put gives an attempt's request the body.
func (p payload) put(req *http.Request) error {
	req.Body, req.GetBody, req.ContentLength = nil, nil, p.length
	if p.open == nil {
		return nil
	}
	body, err := p.open()
	if err != nil {
		return fmt.Errorf("the body cannot be opened: %w", err)
	}
	req.Body = body
	if !p.once {
		req.GetBody = p.open // for the base's own repeats, on the same key
	}
	return nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // what was read of it counts, not how it ended
	}
}
