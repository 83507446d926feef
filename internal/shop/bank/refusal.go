package bank

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// refusal is what the bank says instead of telling of a charge or a refund.
type refusal struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Charged is false if this request moved no money and, unless the card ignores
	// keys, there is neither charge nor refund under its key. Nil is no word on it.
	Charged *bool `json:"charged,omitzero"`
}

// statuses is every refusal that there is.
var statuses = map[string]int{
	"body-malformed":     http.StatusBadRequest,
	"body-too-large":     http.StatusRequestEntityTooLarge,
	"media-type":         http.StatusUnsupportedMediaType,
	"key-missing":        http.StatusBadRequest,
	"key-invalid":        http.StatusBadRequest,
	"key-mismatch":       http.StatusUnprocessableEntity,
	"charge-invalid":     http.StatusUnprocessableEntity,
	"refund-invalid":     http.StatusUnprocessableEntity,
	"faults-invalid":     http.StatusBadRequest,
	"query-invalid":      http.StatusBadRequest,
	"not-found":          http.StatusNotFound,
	"method-not-allowed": http.StatusMethodNotAllowed,
	"outcome-unknown":    http.StatusInternalServerError,
}

// refuse makes the refusal of a code; detail says what is wrong.
func refuse(code, detail string) *refusal {
	if statuses[code] == 0 {
		panic("bank: no such refusal: " + code)
	}
	return &refusal{Code: code, Detail: detail}
}

func (r *refusal) answer(w http.ResponseWriter) { writeJSON(w, statuses[r.Code], r) }

// writeJSON answers with v and nothing after it.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("bank: an answer cannot fail to encode: " + err.Error())
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; its repeat will tell it
}
