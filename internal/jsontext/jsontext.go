// Package jsontext encodes what is to be kept as JSON, and refuses what JSON would
// silently change. What cannot be decoded it does not quote.
package jsontext

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// Encode is v as JSON of at most the given number of bytes. The error calls v by name and
// says what to do.
func Encode(name string, v any, most int) ([]byte, error) {
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be encoded: %w; use a type that encoding/json can marshal", name, err)
	case len(b) > most:
		return nil, fmt.Errorf("%s has %d bytes as JSON; at most %d are allowed: keep a reference instead", name, len(b), most)
	case replaces(b):
		return nil, fmt.Errorf("%s holds text that is not UTF-8, which JSON does not keep; use a []byte", name)
	case hidden(v):
		return nil, fmt.Errorf("%s is a %T, which has no exported field for JSON to keep", name, v)
	}
	return b, nil
}

// replaces reports whether encoding/json has replaced bytes that are not UTF-8: it
// escapes what it puts in their place, and nothing else that way.
func replaces(encoded []byte) bool {
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(encoded[i:], []byte(`\ufffd`)) {
			return true
		}
		i++ // what is escaped
	}
	return false
}

// hidden reports whether v is a struct that encodes as {} because all of it is
// unexported.
func hidden(v any) bool {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || t.NumField() == 0 || t.Implements(reflect.TypeFor[json.Marshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return false
		}
	}
	return true
}
