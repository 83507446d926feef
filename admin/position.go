package admin

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// Position is a place in a list of keys or of effects, newest first. The zero
// Position is before the newest. Scope and Key tell those of one moment apart;
// without them a position is before all of CreatedAt.
type Position struct {
	CreatedAt  time.Time
	Scope, Key string
}

// Position returns the place right after k.
func (k Key) Position() Position {
	return Position{CreatedAt: k.CreatedAt, Scope: k.Scope, Key: k.Key}
}

// String writes p as ParsePosition reads it: a time, and behind it scope and
// key if they are there, escaped as in a URL's query.
func (p Position) String() string {
	t := p.CreatedAt.UTC().Format(time.RFC3339Nano)
	if p.Key == "" {
		return t
	}
	return t + "," + url.QueryEscape(p.Scope) + "," + url.QueryEscape(p.Key)
}

// ParsePosition reads what String wrote, or a bare time as in RFC 3339. Its
// error wraps ErrFilter.
func ParsePosition(text string) (Position, error) {
	parts := strings.Split(text, ",")
	t, err := time.Parse(time.RFC3339Nano, parts[0])
	if err == nil && len(parts) == 1 {
		return Position{CreatedAt: t}, nil
	}
	if err == nil && len(parts) == 3 {
		scope, scopeErr := url.QueryUnescape(parts[1])
		key, keyErr := url.QueryUnescape(parts[2])
		if scopeErr == nil && keyErr == nil && isText(scope) && isText(key) {
			return Position{CreatedAt: t, Scope: scope, Key: key}, nil
		}
	}
	return Position{}, fmt.Errorf("%w: a position is a time like 2026-01-31T12:00:00Z, or what a list said of its next page", ErrFilter)
}

// isText reports whether a column can hold the text, and it is not empty.
func isText(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// parameters are p as keys_list and effects_list take it; all nil for the zero Position.
func (p Position) parameters() (before *time.Time, scope, key *string) {
	if p.CreatedAt.IsZero() {
		return nil, nil, nil
	}
	return &p.CreatedAt, optional(p.Scope), optional(p.Key)
}
