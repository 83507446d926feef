package idemhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// canonicalJSON is the canonical form of one JSON value (RFC 8785). It refuses
// what that form cannot keep exactly: a repeated key, invalid UTF-8, and a
// number that is not the shortest decimal of a double, such as an integer above
// 2^53, since two requests that differ there would pass for the same.
func canonicalJSON(body []byte) ([]byte, error) {
	if err := exactNumbers(body); err != nil {
		return nil, err
	}
	value := jsontext.Value(bytes.Clone(body))
	if err := value.Canonicalize(); err != nil {
		return nil, notCanonical(err)
	}
	return value, nil
}

// notCanonical says where the body goes wrong, and nothing of what is there.
func notCanonical(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the body is not one valid JSON value with unique keys: byte %d is wrong", syntax.ByteOffset)
	}
	return errors.New("the body is not one valid JSON value with unique keys")
}

// exactNumbers reads body token by token and looks at the numbers.
func exactNumbers(body []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return notCanonical(err)
		}
		if token.Kind() == '0' && !exact(token.String()) {
			return fmt.Errorf("the number that ends at byte %d has no exact canonical form (RFC 8785); send it as a string", decoder.InputOffset())
		}
	}
}

// exact reports whether a JSON number means the same decimal after it has been
// a double.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false // beyond the largest double
	}
	digits, exponent := decimal(number)
	want, wantExponent := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return digits == want && exponent == wantExponent
}

// decimal takes a number apart into its significant digits and the power of ten
// of the last one. Zero has no digits. It is linear in the number's length.
func decimal(number string) (digits string, exponent int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "", 0
	}
	exponent, _ = strconv.Atoi(power) // none is 0; one that does not fit is not a double's
	significant := strings.TrimRight(digits, "0")
	return significant, exponent - len(fraction) + len(digits) - len(significant)
}
