package bank

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxBody is the longest body in bytes: many times the largest charge.
const maxBody = 4 << 10

// readBody reads a JSON body into v, strictly: a member that v does not have, a
// member twice, or anything after the value is refused. The media type is one
// that no page of another site can send unasked.
func readBody(w http.ResponseWriter, r *http.Request, v any) *refusal {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return refuse("media-type", "send the body with Content-Type: application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return refuse("body-too-large", fmt.Sprintf("the body must be at most %d bytes long", maxBody))
	case err != nil:
		return refuse("body-malformed", "the body did not arrive whole; send it again")
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		return refuse("body-malformed", "the body: "+explainJSON(err))
	}
	return nil
}

// explainJSON says what is wrong with a value in words that do not speak of Go.
func explainJSON(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Sprintf("the member %q is there twice", syntax.JSONPointer.LastToken())
		}
		return fmt.Sprintf("it is not valid JSON, at byte %d", syntax.ByteOffset)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer.LastToken() != "" {
		return fmt.Sprintf("the member %q is not known here, or has a value of the wrong type", semantic.JSONPointer.LastToken())
	}
	return "it must be a JSON object"
}
