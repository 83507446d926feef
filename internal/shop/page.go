package shop

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load and ask only what this shop serves, and nobody
// frame it: what is not named is refused.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pageTypes are the media types of the page's files. The system's own table is
// not asked: some have none for scripts, and a browser runs no script without.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

// asset is a file of the page, as it is served.
type asset struct {
	name, mediaType, tag string
	content              []byte
}

func newAsset(name string, content []byte) asset {
	sum := sha256.Sum256(content)
	return asset{name: name, mediaType: pageTypes[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:16]) + `"`, content: content}
}

// ServeHTTP implements http.Handler. A browser may keep the file but asks each
// time whether it still is the one, since another version of the shop may be
// listening.
func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("Content-Type", a.mediaType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	header.Set("Etag", a.tag)
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.content))
}

// addPage adds GET / and the files of the page to mux.
func addPage(mux *http.ServeMux, faults bool) {
	mux.Handle("GET /{$}", index(renderPage(faults)))
	entries, err := pageFiles.ReadDir("page")
	if err != nil {
		panic("shop: the page is not in this program: " + err.Error())
	}
	for _, entry := range entries {
		if name := entry.Name(); path.Ext(name) != ".html" {
			content, err := pageFiles.ReadFile("page/" + name)
			if err != nil {
				panic("shop: a file of the page: " + err.Error())
			}
			mux.Handle("GET /page/"+name, newAsset(name, content))
		}
	}
}

// renderPage makes the page, which tells its scripts whether the shop obeys the
// headers that make trouble.
func renderPage(faults bool) asset {
	var page bytes.Buffer
	parsed := template.Must(template.ParseFS(pageFiles, "page/page.html"))
	if err := parsed.Execute(&page, struct{ Faults bool }{faults}); err != nil {
		panic("shop: the page cannot fail to render: " + err.Error())
	}
	return newAsset("page.html", page.Bytes())
}

// index is GET /: the page for browsers, and what there is for everybody else.
func index(page asset) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if acceptsHTML(r) {
			page.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, endpoints)
	})
}

// acceptsHTML reports whether a client names HTML as something that it takes. A
// wildcard does not count: it is what curl sends.
func acceptsHTML(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for element := range strings.SplitSeq(line, ",") {
			media, parameters, err := mime.ParseMediaType(element)
			if err != nil || media != "text/html" {
				continue
			}
			quality, weighted := parameters["q"]
			return !weighted || strings.Trim(quality, "0.") != "" // a weight of zero means "not this"
		}
	}
	return false
}

const endpoints = `The shop of Idem's demo. In a browser this is a page with two buttons.

POST /orders            {"customer_id":123,"amount":1500}          needs an Idempotency-Key
POST /payments          {"order_id":1,"card":"tok_ok"}             needs an Idempotency-Key
POST /bookings          {"customer_id":1,"slot":"2027-01-15T19:00"}  needs an Idempotency-Key
POST /refunds           {"payment_id":1}                           needs an Idempotency-Key
POST /unguarded/orders  {"customer_id":123,"amount":1500}          no guard: a repeat is another order
GET  /orders/{id}       one order of yours
GET  /refunds/{id}      one refund of yours, and what has come of it
GET  /ledger            the balance of every account
GET  /stats             how much there is of everything
GET  /stats?customers=100-199   the orders of these customers, and how many of them are doubles
GET  /healthz /readyz   alive, ready
GET  /metrics           for Prometheus

Authorization: Bearer demo-NAME is the principal NAME; without it you are the guest.
`
