package jsontext_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/jsontext"
)

func TestDiscreet_saysWhatIsWrongAndQuotesNothing(t *testing.T) {
	type card struct {
		Number int32      `json:"number"`
		Name   string     `json:"name"`
		Until  time.Time  `json:"until"`
		From   netip.Addr `json:"from"`
	}
	for text, want := range map[string]string{
		`{"number": 4111111111111111}`: "cannot unmarshal number into Go struct field card.number of type int32",
		`{"number": 4111.11}`:          "cannot unmarshal number into Go struct field card.number of type int32",
		`{"number": "4111"}`:           "cannot unmarshal string into Go struct field card.number of type int32",
		`{"name": {"first": "4111"}}`:  "cannot unmarshal object into Go struct field card.name of type string",
		`{"until": "4111-secret"}`:     "refused by the method that decodes it",
		`{"from": "4111.secret"}`:      "refused by the method that decodes it",
		`{"name": "4111"`:              "unexpected end of JSON input",
		`4111 secret`:                  "invalid character 's' after top-level value",
	} {
		var c card
		got := jsontext.Discreet(json.Unmarshal([]byte(text), &c))
		if got == nil || !strings.Contains(got.Error(), want) || strings.Contains(got.Error(), "4111") || strings.Contains(got.Error(), "secret") {
			t.Errorf("%s: %v, want %q and nothing of it", text, got, want)
		}
	}
	if err := jsontext.Discreet(nil); err != nil {
		t.Errorf("of no error it makes %v", err)
	}
}
