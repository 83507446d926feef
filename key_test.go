package idem_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem"
)

func TestParseKey_readsBareAndQuotedValues(t *testing.T) {
	longest := strings.Repeat("k", idem.MaxKey)
	for value, want := range map[string]string{
		"abc":                      "abc",
		`"abc"`:                    "abc",
		"ABC":                      "ABC",
		"!~#/:;=@[]{}":             "!~#/:;=@[]{}",
		`a\b`:                      `a\b`,
		`"a\\b"`:                   `a\b`,
		`"a\"b"`:                   `a"b`,
		`"a,b"`:                    "a,b",
		longest:                    longest,
		`"` + longest + `"`:        longest,
		`"` + longest[1:] + `\""`:  longest[1:] + `"`,
		"'abc'":                    "'abc'",
		"?1":                       "?1",
		":YWJj:":                   ":YWJj:",
		"4f2b4a1a-7f0e-4d1b-9b2e-": "4f2b4a1a-7f0e-4d1b-9b2e-",
	} {
		if got, err := idem.ParseKey(value); err != nil || got != want {
			t.Errorf("ParseKey(%q) = %q, %v; want %q", value, got, err, want)
		}
	}
}

func TestParseKey_refusesOthersWithoutRepeatingThem(t *testing.T) {
	tooLong := strings.Repeat("k", idem.MaxKey+1)
	for _, value := range []string{"", `""`, `"`, tooLong, `"` + tooLong + `"`, "a b", " a", "a ", `"a b"`, "a\tb", "a,b", `a"`, `a"b"`,
		`"abc`, `"abc" `, `"abc";p=1`, `"a""b"`, `"a","b"`, `"a\b"`, `"abc\`, `"abc\"`, "schlüssel", `"schlüssel"`, "secret\x00", "secret\n", "secret\x7f", "\xff"} {
		_, err := idem.ParseKey(value)
		if !errors.Is(err, idem.ErrKeyInvalid) {
			t.Errorf("ParseKey(%q): got %v, want ErrKeyInvalid", value, err)
		} else if len(value) > 2 && strings.Contains(err.Error(), value) || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the value: %v", err)
		}
	}
}

// The grammar once more, as expressions: a bare key, the inside of a quoted one,
// and one escape of it.
var (
	bareKey   = regexp.MustCompile(`^[!#-+\--~]{1,255}$`)
	quotedKey = regexp.MustCompile(`^"((?:[!#-\[\]-~]|\\["\\]){1,255})"$`)
	escape    = regexp.MustCompile(`\\(["\\])`)
)

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "abc", `"abc"`, `"a\"b\\c"`, `"abc`, `"a";b`, "a,b", "a b", "\x00", "\"\x00\"", "é", strings.Repeat("k", 256)} {
		f.Add(seed)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idem.ParseKey(value)
		want, valid := value, bareKey.MatchString(value)
		if quoted := quotedKey.FindStringSubmatch(value); quoted != nil {
			want, valid = escape.ReplaceAllString(quoted[1], "$1"), true
		}
		if !valid {
			if !errors.Is(err, idem.ErrKeyInvalid) {
				t.Fatalf("ParseKey(%q) = %q, %v; want ErrKeyInvalid", value, key, err)
			}
			return
		}
		if err != nil || key != want {
			t.Fatalf("ParseKey(%q) = %q, %v; want %q", value, key, err, want)
		}
		if err := idem.ValidKey(key); err != nil {
			t.Fatalf("ParseKey(%q) gave a key that is not valid: %v", value, err)
		}
		if again, err := idem.ParseKey(`"` + quote.Replace(key) + `"`); err != nil || again != key {
			t.Fatalf("%q in quotes is %q, %v", key, again, err)
		}
		if again, err := idem.ParseKey(key); bareKey.MatchString(key) && (err != nil || again != key) {
			t.Fatalf("%q bare is %q, %v", key, again, err)
		}
	})
}

func TestValidScope_acceptsWhatCanBeStored(t *testing.T) {
	for _, scope := range []string{"a", "alice@example.com", "客户", "a b\n", strings.Repeat("s", idem.MaxScope)} {
		if err := idem.ValidScope(scope); err != nil {
			t.Errorf("ValidScope(%q): %v", scope, err)
		}
	}
	for _, scope := range []string{"", "a\x00", "\xff", "\xed\xa0\x80", strings.Repeat("s", idem.MaxScope+1), strings.Repeat("客", 86)} {
		err := idem.ValidScope(scope)
		if !errors.Is(err, idem.ErrScopeInvalid) {
			t.Errorf("ValidScope(%q): got %v, want ErrScopeInvalid", scope, err)
		} else if scope != "" && strings.Contains(err.Error(), scope) {
			t.Errorf("the error repeats the scope: %v", err)
		}
	}
}
