package shop

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// problem is a refusal of the shop's own, in the form of the guard's (RFC 9457).
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	Retryable  bool   `json:"retryable"`
	SafeNewKey bool   `json:"safe_new_key"`
}

// problemBase is where a problem's type leads, by its code.
const problemBase = "https://github.com/idem-go/idem/blob/main/docs/shop.md#"

// refusals is every problem that the shop itself answers with. SafeNewKey is
// true only where no send under this key can have changed anything.
var refusals = map[string]problem{
	"body-malformed":     {Status: http.StatusBadRequest, Title: "The body is not what this endpoint reads"},
	"media-type":         {Status: http.StatusUnsupportedMediaType, Title: "The body must be JSON"},
	"body-too-large":     {Status: http.StatusRequestEntityTooLarge, Title: "The request's body is too large"},
	"order-invalid":      {Status: http.StatusUnprocessableEntity, Title: "There is no such order to make"},
	"booking-invalid":    {Status: http.StatusUnprocessableEntity, Title: "There is no such booking to make"},
	"payment-invalid":    {Status: http.StatusUnprocessableEntity, Title: "There is no such payment to make"},
	"refund-invalid":     {Status: http.StatusUnprocessableEntity, Title: "There is no such refund to make"},
	"fault-invalid":      {Status: http.StatusBadRequest, Title: "There is no such trouble to make"},
	"query-invalid":      {Status: http.StatusBadRequest, Title: "The query is not what this endpoint reads"},
	"slot-taken":         {Status: http.StatusConflict, Title: "The slot is taken", SafeNewKey: true},
	"card-declined":      {Status: http.StatusPaymentRequired, Title: "The card was declined", SafeNewKey: true},
	"already-paid":       {Status: http.StatusConflict, Title: "The order is paid"},
	"not-captured":       {Status: http.StatusConflict, Title: "The payment is not captured", SafeNewKey: true},
	"already-refunded":   {Status: http.StatusConflict, Title: "The payment is refunded"},
	"key-spent":          {Status: http.StatusConflict, Title: "The key has been used for another payment"},
	"bank-missing":       {Status: http.StatusServiceUnavailable, Title: "The shop has no bank"},
	"unauthenticated":    {Status: http.StatusUnauthorized, Title: "The caller could not be identified"},
	"not-found":          {Status: http.StatusNotFound, Title: "There is nothing here"},
	"method-not-allowed": {Status: http.StatusMethodNotAllowed, Title: "This endpoint has another method"},
	"internal":           {Status: http.StatusInternalServerError, Title: "The shop failed", Retryable: true},
	"unavailable":        {Status: http.StatusServiceUnavailable, Title: "The shop is not ready", Retryable: true},
	"failed-on-purpose":  {Status: http.StatusInternalServerError, Title: "The shop failed, as it was asked to", Retryable: true},
}

// refuse answers with the problem of a code; detail says what to do.
func refuse(w http.ResponseWriter, code, detail string) {
	p, ok := refusals[code]
	if !ok {
		panic("shop: no such refusal: " + code)
	}
	p.Code, p.Type, p.Detail = code, problemBase+code, detail
	if p.Retryable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, p.Status, "application/problem+json", p)
}

// writeJSON answers with v and nothing after it.
func writeJSON(w http.ResponseWriter, status int, mediaType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("shop: an answer cannot fail to encode: " + err.Error())
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; its retry will tell it
}
