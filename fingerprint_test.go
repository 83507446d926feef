package idem_test

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/idem-go/idem"
)

// words are all strings over two letters and NUL of up to n bytes.
func words(n int) []string {
	all := []string{""}
	for start := 0; n > 0; n-- {
		end := len(all)
		for _, word := range all[start:end] {
			all = append(all, word+"\x00", word+"\x01", word+"a")
		}
		start = end
	}
	return all
}

// Every way to cut every short string into up to three parts has a fingerprint
// of its own.
func TestNewFingerprint_keepsPartsApart(t *testing.T) {
	seen := map[string][]string{}
	see := func(parts ...string) {
		var framed [][]byte
		for _, part := range parts {
			framed = append(framed, []byte(part))
		}
		sum := string(idem.NewFingerprint(idem.FingerprintRaw, framed...).Sum)
		if other, ok := seen[sum]; ok && !slices.Equal(other, parts) {
			t.Fatalf("%q and %q have one fingerprint", other, parts)
		}
		seen[sum] = slices.Clone(parts)
	}
	all := words(2)
	see()
	for _, a := range all {
		see(a)
		for _, b := range all {
			see(a, b)
			see(a + b)
			for _, c := range all {
				see(a, b, c)
				see(a+b, c)
				see(a, b+c)
			}
		}
	}
	if len(seen) < len(all)*len(all)*len(all) {
		t.Fatalf("%d fingerprints, want at least one for each of %d triples", len(seen), len(all)*len(all)*len(all))
	}
}

// The framing of a part's length cannot be imitated by a part's bytes.
func TestNewFingerprint_lengthsAreNotContent(t *testing.T) {
	frame := func(part string) []byte { return append([]byte{0, 0, 0, 0, 0, 0, 0, byte(len(part))}, part...) }
	two := idem.NewFingerprint(idem.FingerprintRaw, []byte("a"), []byte("b"))
	for _, parts := range [][][]byte{{[]byte("ab")}, {append([]byte("a"), frame("b")...)}, {append(frame("a"), frame("b")...)}} {
		if one := idem.NewFingerprint(idem.FingerprintRaw, parts...); bytes.Equal(one.Sum, two.Sum) {
			t.Errorf("%q passes for the two parts a and b", parts)
		}
	}
}

// What is stored must stay comparable: the format of version 1 is fixed.
func TestNewFingerprint_formatIsFixed(t *testing.T) {
	got := idem.NewFingerprint(idem.FingerprintRaw, []byte("POST"), []byte("/orders"), nil)
	const want = "9b6c1e6983eb8956ad3e44d1f2abcded967803bad997f4aece7514846b82bdf9"
	if sum := hex.EncodeToString(got.Sum); sum != want || got.Version != 1 {
		t.Errorf("got version %d, %s; want 1, %s", got.Version, sum, want)
	}
}
