package idemclient

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

const (
	// MaxKey is the longest key in bytes, as the server's.
	MaxKey = 255

	// MaxIntent is the longest name of an intent in bytes: some words and an id,
	// not a document.
	MaxIntent = 255
)

// NewKey mints a key: a UUIDv7, which sorts by the time of its making and tells
// its age. It is for programs that keep keys themselves, beside the rows of the
// intent. The error is the random source's. Safe for concurrent use.
func NewKey() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("idemclient: no randomness for a key: %w", err)
	}
	return id.String(), nil
}

// validKey reports whether key can be sent. The error wraps ErrKeyInvalid and
// does not repeat the key.
func validKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrKeyInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrKeyInvalid, len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return fmt.Errorf("%w: byte %d is not visible ASCII", ErrKeyInvalid, i+1)
		}
	}
	return nil
}

// validIntent reports whether name can name an intent. The error wraps
// ErrIntentInvalid and does not repeat the name.
func validIntent(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrIntentInvalid)
	case len(name) > MaxIntent:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrIntentInvalid, len(name), MaxIntent)
	case !utf8.ValidString(name), strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%w: it must be valid UTF-8 without NUL", ErrIntentInvalid)
	}
	return nil
}

var (
	quoting   = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	unquoting = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
)

// headerValue is key as it travels: bare, or as a Structured Field String
// (RFC 9651). A key with a quote or a comma has no bare form.
func headerValue(key string, quoted bool) string {
	if !quoted && !strings.ContainsAny(key, `",`) {
		return key
	}
	return `"` + quoting.Replace(key) + `"`
}

// bareKey is the key that a header's value names, so that it can be handed to
// WithKey.
func bareKey(value string) string {
	if len(value) < 3 || value[0] != '"' || value[len(value)-1] != '"' {
		return value
	}
	return unquoting.Replace(value[1 : len(value)-1])
}

// age is how long ago key was minted, by this machine's clock, or 0 if it is
// not a UUIDv7.
func age(key string, now time.Time) time.Duration {
	id, err := uuid.Parse(key)
	if err != nil || id.Version() != 7 {
		return 0
	}
	return now.Sub(time.Unix(id.Time().UnixTime()))
}
