package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Discreet is why encoding/json could not decode something, without the value: errors are
// logged, and stored beside a task for whoever looks at it.
func Discreet(err error) error {
	var mistyped *json.UnmarshalTypeError
	var malformed *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistyped):
		m := *mistyped
		m.Value, _, _ = strings.Cut(m.Value, " ") // of "number 17"
		return &m
	case errors.As(err, &malformed):
		return malformed // which tells one character, and where
	default: // by a type's own method, which may quote all of it
		return fmt.Errorf("a value is refused by the method that decodes it, with a %T", err)
	}
}
