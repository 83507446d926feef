package idemhttp

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"
)

// The examples of RFC 8785, sections 3.2.2 and 3.2.3, except for the one number
// that its form cannot keep exactly.
func TestCanonicalJSON_followsTheRFC(t *testing.T) {
	for in, want := range map[string]string{
		`{"numbers":[1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`:              `{"literals":[null,true,false],"numbers":[1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji","\u0080":"Control","\u00f6":"Latin"}`: "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin\",\"€\":\"Euro Sign\",\"😀\":\"Emoji\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		` [ ] `:                  `[]`,
		`-0`:                     `0`,
		`1e21`:                   `1e+21`,
		`1e20`:                   `100000000000000000000`,
		`9007199254740992`:       `9007199254740992`,
		`-9007199254740994`:      `-9007199254740994`,
		`0.000001`:               `0.000001`,
		`0.0000001`:              `1e-7`,
		`5e-324`:                 `5e-324`,
		`1.7976931348623157e308`: `1.7976931348623157e+308`,
	} {
		got, err := canonicalJSON([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", in, got, err, want)
		}
	}
}

func TestCanonicalJSON_refusesInexactNumbers(t *testing.T) {
	for _, number := range []string{"333333333.33333329", "9007199254740993", "1.00000000000000001", "0.30000000000000004441", "1e309", "1e-325", "2e-324", "1.7976931348623158e308", "1e999999999999999999999"} {
		if got, err := canonicalJSON([]byte(number)); err == nil {
			t.Errorf("%s became %s", number, got)
		}
	}
}

func TestCanonicalJSON_leavesTheBodyAlone(t *testing.T) {
	in := []byte(`{ "b" : 2, "a" : 1 }`)
	before := bytes.Clone(in)
	if _, err := canonicalJSON(in); err != nil || !bytes.Equal(in, before) {
		t.Errorf("the body became %s, %v", in, err)
	}
}

// Two bodies with one canonical form have one value, since each has the value of
// its form.
func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{`{"b":[1,1.0,1e0],"a":{"x":"\u00e9"}}`, `9007199254740993`, `[9007199254740992,-0,0.1,1e23]`, `1e-400`, `{"a":1,"a":2}`, `"\ud800"`, ``, `1 2`, `0e999999999`, `100000000000000000000000`, `0.00000000000000000000000001e26`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		form, err := canonicalJSON(body)
		if err != nil {
			return
		}
		again, err := canonicalJSON(form)
		if err != nil || !bytes.Equal(again, form) {
			t.Fatalf("%q is not its own canonical form but %q, %v", form, again, err)
		}
		if got, want := value(t, form), value(t, body); !equal(got, want) {
			t.Fatalf("%q has another value than its canonical form %q", body, form)
		}
	})
}

// value decodes JSON with its numbers as they are written.
func value(t *testing.T, body []byte) (v any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q has a canonical form and is not JSON: %v", body, err)
	}
	return v
}

// equal compares two values, and numbers exactly.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(a.String(), b.String())
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			if other, ok := b[name]; !ok || !equal(a[name], other) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

func equalNumbers(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	return ok && also && x.Cmp(y) == 0
}
