package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/idem-go/idem/internal/storm"
)

// demoPlaces is where the parts of a demo are.
type demoPlaces struct {
	url string // the shop's
	*demoDatabase
	bank *demoBank
}

// writeDemo writes the proof and where things are.
func (e env) writeDemo(at demoPlaces, proof *storm.Report, o demoOptions) error {
	if o.json {
		return e.writeDemoJSON(at, proof, o)
	}
	var text strings.Builder
	if proof != nil {
		text.WriteString("\n")
		if err := proof.Write(&text); err != nil {
			return err
		}
	}
	if !o.exit {
		at.write(&text, o)
	}
	return e.write(text.String())
}

// demoJSON is what --json puts out.
type demoJSON struct {
	URL      string        `json:"url"`
	Bank     string        `json:"bank"`
	DataDir  string        `json:"data_dir,omitempty"`
	Holds    *bool         `json:"holds,omitempty"`
	Failures []string      `json:"failures,omitempty"`
	Storm    *storm.Report `json:"storm,omitempty"`
}

func (e env) writeDemoJSON(at demoPlaces, proof *storm.Report, o demoOptions) error {
	out := demoJSON{URL: at.url, Bank: at.bank.URL, Storm: proof}
	if at.server != nil && (o.dataDir != "" || !o.exit) { // else it is about to go
		out.DataDir = at.server.DataDir()
	}
	if proof != nil {
		holds := proof.Holds()
		out.Holds, out.Failures = &holds, proof.Failures()
	}
	return e.writeJSON(out)
}

// write says where things are and what to try.
func (at demoPlaces) write(w io.Writer, o demoOptions) {
	fmt.Fprintf(w, "\n  shop      %s/\n", at.url)
	switch {
	case at.server == nil:
		fmt.Fprintf(w, "  database  the one of --database-url: schemas shop and idem\n")
	case o.dataDir == "":
		fmt.Fprintf(w, "  database  psql '%s'\n  data      %s, removed at the end\n", at.server.URL(), at.server.DataDir())
	default:
		fmt.Fprintf(w, "  database  psql '%s'\n  data      %s, kept\n", at.server.URL(), at.server.DataDir())
	}
	fmt.Fprintf(w, "  metrics   %s/metrics, of this shop and of the storm's\n", at.url)
	fmt.Fprintf(w, "  bank      %s, with its log in %s%s\n", at.bank.URL, at.bank.log, at.logEnds(o))
	fmt.Fprintf(w, `
Send this twice, and once more with another amount:

  curl -i -X POST -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: 4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77' \
    -d '{"customer_id":123,"amount":1500}' %[1]s/orders

Pay for it, twice, and once more under another key; ID is the order's:

  curl -i -X POST -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: 9b1c64d2-3a57-4c0e-8f3d-5f0e7a2b6c11' \
    -d '{"order_id":ID,"card":"tok_ok"}' %[1]s/payments

Give the money back, twice, and once more under another key; ID is the payment's:

  curl -i -X POST -H 'Content-Type: application/json' \
    -H 'Idempotency-Key: c2d81f0a-6d1e-4b7b-8f55-3b9a4e7d9f20' \
    -d '{"payment_id":ID}' %[1]s/refunds

`, at.url)
}

// logEnds says what becomes of the bank's log.
func (at demoPlaces) logEnds(o demoOptions) string {
	if o.dataDir != "" {
		return ""
	}
	return ", removed at the end"
}
