package idem

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxKey is the longest key in bytes. It is Stripe's limit, which clients
	// already keep, and keeps the primary key's entries far below the
	// 2,704 bytes that a PostgreSQL b-tree page allows.
	MaxKey = 255

	// MaxScope is the longest scope in bytes: an account id or an e-mail
	// address fits, a token (which must not be stored) mostly does not.
	MaxScope = 255
)

// ParseKey reads one Idempotency-Key value and returns the key it names.
//
// A value that begins with a quote is a Structured Field String
// (RFC 9651, section 3.3.3) without parameters; any other is taken as it is
// and may hold neither a quote nor a comma, so that "abc" and abc are one key.
// A key is 1 to MaxKey bytes of visible ASCII, case kept. Any other value is an
// error for which errors.Is(err, ErrKeyInvalid) holds; its text never repeats
// the value. Safe for concurrent use.
func ParseKey(value string) (string, error) {
	key := value
	if strings.HasPrefix(value, `"`) {
		unquoted, err := unquote(value)
		if err != nil {
			return "", err
		}
		key = unquoted
	} else if strings.ContainsAny(value, `",`) {
		return "", fmt.Errorf("%w: an unquoted key holds neither a quote nor a comma", ErrKeyInvalid)
	}
	return key, ValidKey(key)
}

// unquote reads a Structured Field String: a quote, printable ASCII in which
// only the quote and the backslash are escaped, a quote, and nothing after it.
func unquote(value string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			i++
			if i == len(value) || (value[i] != '"' && value[i] != '\\') {
				return "", fmt.Errorf("%w: a backslash escapes only a quote or a backslash", ErrKeyInvalid)
			}
			key.WriteByte(value[i])
		case '"':
			if i != len(value)-1 {
				return "", fmt.Errorf("%w: nothing may follow the closing quote", ErrKeyInvalid)
			}
			return key.String(), nil
		default:
			key.WriteByte(c)
		}
	}
	return "", fmt.Errorf("%w: the closing quote is missing", ErrKeyInvalid)
}

// ValidKey reports whether key can be stored: 1 to MaxKey bytes of visible
// ASCII (0x21 to 0x7e). The error wraps ErrKeyInvalid. Safe for concurrent use.
func ValidKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: it is empty", ErrKeyInvalid)
	}
	if len(key) > MaxKey {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrKeyInvalid, len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return fmt.Errorf("%w: byte %d is not visible ASCII", ErrKeyInvalid, i+1)
		}
	}
	return nil
}

// ValidScope reports whether scope can be stored: 1 to MaxScope bytes of valid
// UTF-8 without NUL. The error wraps ErrScopeInvalid and does not repeat the
// scope. Safe for concurrent use.
func ValidScope(scope string) error {
	switch {
	case scope == "":
		return fmt.Errorf("%w: it is empty; a scope names whom a key belongs to", ErrScopeInvalid)
	case len(scope) > MaxScope:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrScopeInvalid, len(scope), MaxScope)
	case !utf8.ValidString(scope), strings.IndexByte(scope, 0) >= 0:
		return fmt.Errorf("%w: it must be valid UTF-8 without NUL", ErrScopeInvalid)
	}
	return nil
}
