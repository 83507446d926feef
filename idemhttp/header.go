package idemhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/idem-go/idem"
)

const (
	headerReplayed = "Idempotent-Replayed"
	headerStatus   = "Idempotency-Status"
)

// headerList is the names of the headers that are replayed, in the order in
// which they are stored.
type headerList []string

// newHeaderList is what describes the answer itself, and what a program adds.
func newHeaderList(added []string) headerList {
	list := headerList{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition",
		"Location", "Etag", "Link", "Last-Modified"}
	for _, name := range added {
		if name = textproto.CanonicalMIMEHeaderKey(name); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// pick returns the lines of h that are replayed. The values of one name keep
// their order. An encoding that outer middleware had announced before the handler
// ran is not the answer's: that middleware decides it anew for each request.
func (l headerList) pick(h, outer http.Header) []idem.HeaderField {
	fields := []idem.HeaderField{}
	h = canonical(h)
	for _, name := range l {
		if name == "Content-Encoding" && slices.Equal(h[name], outer[name]) {
			continue
		}
		for _, value := range h[name] {
			fields = append(fields, idem.HeaderField{Name: name, Value: value})
		}
	}
	return fields
}

// canonical is h with every name as net/http spells it: a handler may have set
// h["ETag"], which net/http sends.
func canonical(h http.Header) http.Header {
	for name := range h {
		if textproto.CanonicalMIMEHeaderKey(name) != name {
			spelled := make(http.Header, len(h))
			for name, values := range h {
				for _, value := range values {
					spelled.Add(name, value)
				}
			}
			return spelled
		}
	}
	return h
}

// never are the headers that belong to one session, one connection or one moment.
var never = []string{"Set-Cookie", "Set-Cookie2", "Date", "Age", "Authorization", "Www-Authenticate",
	"Authentication-Info", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Content-Length", "Retry-After", "Traceparent", "Tracestate", "Baggage", "Server-Timing",
	"X-Request-Id", "X-Correlation-Id", "X-Trace-Id", "Request-Id", headerReplayed, headerStatus}

// neverPrefixes are families of such headers: CORS, rate limits, traces.
var neverPrefixes = []string{"Access-Control-", "Ratelimit", "X-Ratelimit", "X-Rate-Limit", "X-B3-", "X-Amzn-Trace"}

func validReplayHeaders(field string, names []string) error {
	var faults []error
	for _, name := range names {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		forbidden := slices.Contains(never, canonical)
		for _, prefix := range neverPrefixes {
			forbidden = forbidden || strings.HasPrefix(canonical, prefix)
		}
		if forbidden {
			faults = append(faults, fmt.Errorf("idemhttp: %s holds %q, which belongs to one session, connection or moment and is never replayed", field, name))
		}
		faults = append(faults, validHeaderName(field, name))
	}
	return errors.Join(faults...)
}

// validKeyHeaders refuses a name that is there twice: its key would be counted
// twice, and every request refused.
func validKeyHeaders(names []string) error {
	const field = "Config.KeyHeaders"
	var faults []error
	seen := map[string]bool{}
	for _, name := range names {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if seen[canonical] {
			faults = append(faults, fmt.Errorf("idemhttp: %s holds %q twice", field, name))
		}
		seen[canonical] = true
		faults = append(faults, validHeaderName(field, name))
	}
	return errors.Join(faults...)
}

// validFingerprintHeaders refuses a name that no request could carry: two
// requests that differ there would pass for the same.
func validFingerprintHeaders(names []string) error {
	const field = "Route.FingerprintHeaders"
	var faults []error
	for _, name := range names {
		if textproto.CanonicalMIMEHeaderKey(name) == "Host" {
			faults = append(faults, fmt.Errorf("idemhttp: %s holds %q, which net/http keeps in Request.Host; use Route.Fingerprint", field, name))
		}
		faults = append(faults, validHeaderName(field, name))
	}
	return errors.Join(faults...)
}

func validHeaderName(field, name string) error {
	if name == "" || strings.ContainsAny(name, " \t\r\n:") {
		return fmt.Errorf("idemhttp: %s holds %q, which is not a header name", field, name)
	}
	return nil
}

// writeFields sets fields on h, replacing what outer middleware set under the same
// names.
func writeFields(h http.Header, fields []idem.HeaderField) {
	for _, f := range fields {
		h.Del(f.Name)
	}
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
}
