package shop

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxBody is the longest body in bytes where no guard has bounded it: many
	// times the largest order.
	maxBody = 64 << 10
	// maxAmount is the largest amount in minor units: ten thousand million, so
	// that no sum of a shop's orders comes near 2^63.
	maxAmount = 1_000_000_000_000
	// maxCustomer keeps customer ids exact in every JSON reader, 2^53 - 1.
	maxCustomer = 1<<53 - 1
)

// readBody reads a JSON body into v, strictly: a member that v does not have, a
// member twice, or anything after the value is refused. It has answered if it
// returns false.
func readBody(w http.ResponseWriter, r *http.Request, v any) bool {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		refuse(w, "media-type", "Send the body with Content-Type: application/json.")
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, "body-too-large", fmt.Sprintf("The body must be at most %d bytes long.", maxBody))
		return false
	case err != nil:
		refuse(w, "body-malformed", "The body did not arrive whole. Send it again.")
		return false
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		refuse(w, "body-malformed", explainJSON(err))
		return false
	}
	return true
}

// explainJSON says what is wrong with a body in words that do not speak of Go.
func explainJSON(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Sprintf("The member %q is there twice.", syntax.JSONPointer.LastToken())
		}
		return fmt.Sprintf("The body is not valid JSON, at byte %d.", syntax.ByteOffset)
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return "The body could not be read."
	}
	name := semantic.JSONPointer.LastToken()
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("The member %q is not known here.", name)
	case strings.TrimPrefix(string(semantic.JSONPointer), "/") == "":
		return "The body must be a JSON object."
	default:
		return fmt.Sprintf("The member %q has a value of the wrong type.", name)
	}
}

// positive reports in words if a number is not from 1 to most.
func positive(name string, n, most int64) string {
	if n < 1 || n > most {
		return fmt.Sprintf("%s must be a whole number from 1 to %d. ", name, most)
	}
	return ""
}
