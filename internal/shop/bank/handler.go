package bank

import (
	"net/http"
	"slices"
)

// keyHeader names the key that a charge or a refund is made under.
const keyHeader = "Idempotency-Key"

// maxListed bounds a list: the oldest come first, and even a card that
// ignores keys is not charged that often for one thing.
const maxListed = 1000

func (b *bank) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", b.post(b.readCharge))
	mux.HandleFunc("GET /charges", b.list(func(l *list, found []Receipt) { l.Charges = &found }, &b.book.charges))
	mux.HandleFunc("POST /refunds", b.post(b.readRefund))
	mux.HandleFunc("GET /refunds", b.list(func(l *list, found []Receipt) { l.Refunds = &found }, &b.book.refunds))
	mux.HandleFunc("GET /summary", b.getSummary)
	mux.HandleFunc("POST /faults", b.postFaults)
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("/charges", misuse("GET, POST"))
	mux.HandleFunc("/refunds", misuse("GET, POST"))
	mux.HandleFunc("/summary", misuse("GET"))
	mux.HandleFunc("/faults", misuse("POST"))
	mux.HandleFunc("/healthz", misuse("GET"))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse("not-found", "there are /charges, /refunds, /summary, /faults and /healthz").answer(w)
	})
	return mux
}

func misuse(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		refuse("method-not-allowed", "use "+allow).answer(w)
	}
}

// post is POST /charges or POST /refunds, by how its request is read.
func (b *bank) post(read func(http.ResponseWriter, *http.Request) (demand, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, refused := readKey(r)
		var d demand
		if refused == nil {
			d, refused = read(w, r)
		}
		if refused == nil && key == "" && !cards[d.Card].keyless {
			refused = refuse("key-missing", "send the header "+keyHeader+", so that a repeat moves no money a second time")
		}
		if refused != nil {
			b.refuseToMove(w, key, refused)
			return
		}
		receipt, how := b.move(r.Context(), key, d)
		switch {
		case how == mismatch:
			refuseMismatch(w)
		case how == failed:
			refuse("outcome-unknown", "it is not known whether money was moved; send it again with the same key, or ask for its reference").answer(w)
		case how == lost, b.losesReply():
			panic(http.ErrAbortHandler) // the server hangs up
		case how == created:
			writeJSON(w, http.StatusCreated, receipt)
		case how == found:
			writeJSON(w, http.StatusOK, receipt)
		}
	}
}

// readKey reads the key, if there is one and it can be one.
func readKey(r *http.Request) (string, *refusal) {
	keys := r.Header.Values(keyHeader)
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		return "", refuse("key-invalid", "there are several headers "+keyHeader+"; send one")
	}
	if err := visible(keyHeader, keys[0], maxKey); err != nil {
		return "", refuse("key-invalid", err.Error())
	}
	return keys[0], nil
}

// readCharge reads what is to be charged.
func (b *bank) readCharge(w http.ResponseWriter, r *http.Request) (demand, *refusal) {
	var c Charge
	if refused := readBody(w, r, &c); refused != nil {
		return demand{}, refused
	}
	if err := c.check(); err != nil {
		return demand{}, refuse("charge-invalid", err.Error())
	}
	return demand{Charge: c}, nil
}

// readRefund reads what is to be given back. The card is the charge's.
func (b *bank) readRefund(w http.ResponseWriter, r *http.Request) (demand, *refusal) {
	var f Refund
	if refused := readBody(w, r, &f); refused != nil {
		return demand{}, refused
	}
	if err := f.check(); err != nil {
		return demand{}, refuse("refund-invalid", err.Error())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.book.refundable(f)
	if err != nil {
		return demand{}, refuse("refund-invalid", err.Error())
	}
	return demand{Charge{Reference: f.Reference, Amount: f.Amount, Card: c.Card}, f.Of}, nil
}

// refuseToMove refuses what is neither charge nor refund. It says that no money is
// moved, unless the key is in use: then it is another one's, of which there is no such
// word.
func (b *bank) refuseToMove(w http.ResponseWriter, key string, refused *refusal) {
	if key != "" && b.holds(key) {
		refuseMismatch(w)
		return
	}
	refused.Charged = new(bool)
	refused.answer(w)
}

func refuseMismatch(w http.ResponseWriter) {
	refuse("key-mismatch", "this key belongs to another charge or refund; a new one needs a new key").answer(w)
}

// list is what GET /charges and GET /refunds answer, each with one of the two.
type list struct {
	Charges *[]Receipt `json:"charges,omitzero"`
	Refunds *[]Receipt `json:"refunds,omitzero"`
}

// list is GET /charges or GET /refunds: what is on record with a reference, or under a
// key.
func (b *bank) list(fill func(*list, []Receipt), on *shelf) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		reference, key := query["reference"], query["key"]
		if len(query) != 1 || len(reference)+len(key) != 1 {
			refuse("query-invalid", "ask with either ?reference= or ?key=, once").answer(w)
			return
		}
		b.mu.Lock()
		var found []Receipt
		if len(key) == 1 {
			found = on.byKey[key[0]]
		} else {
			found = on.byReference[reference[0]]
		}
		found = slices.Clone(found[:min(len(found), maxListed)])
		b.mu.Unlock()
		var l list
		fill(&l, found)
		writeJSON(w, http.StatusOK, l)
	}
}

func (b *bank) getSummary(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	s := b.book.summary
	b.mu.Unlock()
	writeJSON(w, http.StatusOK, s)
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}
