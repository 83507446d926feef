package idemhttp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/idem-go/idem"
)

// fingerprints are those of one request: the one that the route makes now, and,
// on demand, those of other formats that a stored row may have.
type fingerprints struct {
	x       *exchange
	current idem.Fingerprint
}

// fingerprint computes the request's, once, on the client's bytes.
func (x *exchange) fingerprint() (e ending, refused bool) {
	version := idem.FingerprintRaw
	switch {
	case x.route.Fingerprint != nil:
		version = idem.FingerprintFunc
	case x.route.CanonicalJSON && x.mediaType() == "application/json" || x.route.CanonicalJSON && strings.HasSuffix(x.mediaType(), "+json"):
		version = idem.FingerprintJSON
	}
	current, err := x.fingerprintAs(version)
	if err != nil {
		return ending{problem: codeBodyInvalid, detail: err.Error(), err: err}, true
	}
	x.prints = &fingerprints{x: x, current: current}
	return ending{}, false
}

// same reports whether stored is this request's, in whatever format it is. A
// format that cannot be computed for this request is not the same: a mismatch
// changes nothing, a second run might.
func (f *fingerprints) same(stored idem.Fingerprint) bool {
	mine := f.current
	if stored.Version != mine.Version {
		other, err := f.x.fingerprintAs(stored.Version)
		if err != nil {
			return false
		}
		mine = other
	}
	return bytes.Equal(mine.Sum, stored.Sum)
}

// fingerprintAs computes the fingerprint of one format.
func (x *exchange) fingerprintAs(version int16) (idem.Fingerprint, error) {
	u := x.target()
	method, path := []byte(x.r.Method), []byte(u.EscapedPath())
	if version == idem.FingerprintFunc {
		if x.route.Fingerprint == nil {
			return idem.Fingerprint{}, fmt.Errorf("idemhttp: the route has no Fingerprint function any more")
		}
		own, err := x.route.Fingerprint(x.request(x.r.Context()), bytes.Clone(x.body.bytes))
		return idem.NewFingerprint(version, method, path, own, x.namedHeaders()), err
	}
	body := x.body.bytes
	switch version {
	case idem.FingerprintRaw:
	case idem.FingerprintJSON:
		canonical, err := canonicalJSON(body)
		if err != nil {
			return idem.Fingerprint{}, err
		}
		body = canonical
	default:
		return idem.Fingerprint{}, fmt.Errorf("idemhttp: fingerprint format %d is not known", version)
	}
	encoding := []byte(strings.Join(x.r.Header.Values("Content-Encoding"), ","))
	return idem.NewFingerprint(version, method, path, []byte(u.RawQuery), []byte(x.mediaType()), encoding, body, x.namedHeaders()), nil
}

// target is what the client asked for. A router or middleware outside the guard
// may have rewritten Request.URL (http.StripPrefix does), and two routes must not
// pass for one.
func (x *exchange) target() *url.URL {
	if u, err := url.ParseRequestURI(x.r.RequestURI); err == nil {
		return u
	}
	return x.r.URL
}

// namedHeaders frames the headers that the route names, with how often each is
// there, so that no value can pass for another's.
func (x *exchange) namedHeaders() []byte {
	var framed []byte
	for _, name := range x.route.FingerprintHeaders {
		values := x.r.Header.Values(name)
		framed = binary.BigEndian.AppendUint32(framed, uint32(len(values)))
		for _, value := range values {
			framed = binary.BigEndian.AppendUint32(framed, uint32(len(value)))
			framed = append(framed, value...)
		}
	}
	return framed
}

// mediaType is the request's, without parameters: a charset or a boundary is
// not what makes a request another.
func (x *exchange) mediaType() string {
	raw := x.r.Header.Get("Content-Type")
	if parsed, _, err := mime.ParseMediaType(raw); err == nil {
		return parsed
	}
	return strings.ToLower(strings.TrimSpace(raw))
}
