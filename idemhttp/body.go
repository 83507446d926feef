package idemhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// body is a request's body, held whole.
type body struct{ buffer }

func (b *body) reader() io.ReadCloser { return io.NopCloser(bytes.NewReader(b.bytes)) }

// errBodyRead is a mistake of the program's: two requests whose bodies have been
// read before the guard could see them would pass for the same.
var errBodyRead = errors.New("idemhttp: the body was read before the guard; let the guard come first, or put the bytes back")

// readBody reads the body once. A body that did not arrive whole claims nothing.
func (x *exchange) readBody() (e ending, refused bool) {
	if x.body != nil {
		return ending{}, false
	}
	limit := x.route.MaxBody
	x.body = &body{buffer{budget: x.budget, limit: int(limit)}}
	if x.r.ContentLength > limit {
		return failed(codeBodyTooLarge, nil), true
	}
	if x.r.PostForm != nil || x.r.MultipartForm != nil {
		return failed(codeNotApplied, errBodyRead), true
	}
	err := x.body.readAll(http.MaxBytesReader(x.w, x.r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil && int64(len(x.body.bytes)) < x.r.ContentLength:
		return failed(codeNotApplied, errBodyRead), true
	case err == nil:
		return ending{}, false
	case errors.As(err, &tooLarge):
		return failed(codeBodyTooLarge, nil), true
	case errors.Is(err, errBudget):
		return failed(codeUnavailable, err), true
	default:
		return failed(codeBodyIncomplete, err), true
	}
}

// readAll reads src to its end. Room is taken as the bytes arrive: a slow client
// that announces much holds little.
func (b *body) readAll(src io.Reader) error {
	var last [1]byte // asks for the end when the buffer is as large as may be
	for {
		room := last[:]
		if len(b.bytes) < b.limit {
			if err := b.grow(1); err != nil {
				return err
			}
			room = b.bytes[len(b.bytes):cap(b.bytes)]
		}
		n, err := src.Read(room)
		if len(b.bytes) < b.limit {
			b.bytes = b.bytes[:len(b.bytes)+n]
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
