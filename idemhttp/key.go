package idemhttp

import (
	"errors"
	"fmt"

	"github.com/idem-go/idem"
)

// readKey takes the key from the headers and from Route.KeyFrom, counted
// together. It reports whether the request has one.
func (x *exchange) readKey() (found bool, e ending, refused bool) {
	values, e, refused := x.keyValues()
	switch {
	case refused:
		return false, e, true
	case len(values) == 0 && x.route.KeyOptional:
		return false, ending{}, false
	case len(values) == 0:
		return false, failed(codeKeyMissing, nil), true
	case len(values) > 1:
		return false, ending{problem: codeKeyInvalid, unsafe: true, err: fmt.Errorf("%w: %d of them in one request", idem.ErrKeyInvalid, len(values)),
			detail: fmt.Sprintf("The request carries %d idempotency keys; send exactly one.", len(values))}, true
	}
	key, err := idem.ParseKey(values[0])
	if err != nil {
		return false, failed(codeKeyInvalid, err), true
	}
	if x.route.KeyFormat != nil {
		if err := x.route.KeyFormat(key); err != nil {
			return false, ending{problem: codeKeyInvalid, unsafe: true, err: err,
				detail: "This route takes keys of another format: " + err.Error()}, true
		}
	}
	x.key = key
	return true, ending{}, false
}

func (x *exchange) keyValues() (values []string, e ending, refused bool) {
	for _, name := range x.config.KeyHeaders {
		values = append(values, x.r.Header.Values(name)...)
	}
	if x.route.KeyFrom == nil {
		return values, ending{}, false
	}
	if e, refused := x.readBody(); refused { // a form field lies in the body
		return nil, e, true
	}
	return append(values, x.route.KeyFrom(x.request(x.r.Context()))...), ending{}, false
}

// UUIDs is a Route.KeyFormat that accepts UUIDs only (RFC 9562), in their
// 36-byte form of hexadecimal digits and hyphens, in either case. Safe for
// concurrent use.
func UUIDs(key string) error {
	wrong := errors.New("a UUID, such as 4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77")
	if len(key) != 36 {
		return wrong
	}
	for i := range len(key) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		c := key[i]
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if hyphen != (c == '-') || !hyphen && !hex {
			return wrong
		}
	}
	return nil
}
