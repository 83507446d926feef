package queue

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/idem-go/idem/internal/jsontext"
)

// encode is a payload as it is stored: a []byte as it is, any other T as JSON that can be
// read again.
func encode[T any](payload T) ([]byte, error) {
	if raw, is := any(&payload).(*[]byte); is {
		if len(*raw) > MaxPayload {
			return nil, fmt.Errorf("the payload has %d bytes; at most %d are allowed: keep a reference instead", len(*raw), MaxPayload)
		}
		if *raw == nil {
			return []byte{}, nil
		}
		return *raw, nil
	}
	b, err := jsontext.Encode("the payload", payload, MaxPayload)
	if err != nil {
		return nil, err
	}
	if _, err := decode[T](b); err != nil {
		return nil, fmt.Errorf("the payload can be encoded and not be read again by its handler: %w; use a type that encoding/json can do both with", err)
	}
	return b, nil
}

// encodable reports early that no T could be stored.
func encodable[T any]() error {
	var zero T
	_, err := json.Marshal(zero)
	var unsupported *json.UnsupportedTypeError
	if errors.As(err, &unsupported) {
		return fmt.Errorf("a payload of type %T cannot be encoded: %w; use a type that encoding/json can marshal, or []byte", zero, err)
	}
	return nil
}

// decode is a stored payload as a T. Whoever enqueues by plain SQL can store anything.
func decode[T any](b []byte) (payload T, err error) {
	if raw, is := any(&payload).(*[]byte); is {
		*raw = b
		return payload, nil
	}
	if !utf8.Valid(b) {
		return payload, errors.New("the payload is not UTF-8, as JSON has to be")
	}
	if err := json.Unmarshal(b, &payload); err != nil {
		return payload, fmt.Errorf("the payload is no %T: %w", payload, jsontext.Discreet(err))
	}
	return payload, nil
}

// decodeAll is decode, and an error if a T has no place for some of it.
func decodeAll[T any](b []byte) (payload T, err error) {
	if payload, err = decode[T](b); err != nil {
		return payload, err
	}
	if _, is := any(&payload).(*[]byte); is {
		return payload, nil
	}
	strict := json.NewDecoder(bytes.NewReader(b))
	strict.DisallowUnknownFields()
	var again T
	return payload, strict.Decode(&again)
}

// fingerprint is the digest of what a payload means.
func fingerprint(means any) ([]byte, error) {
	b, err := jsontext.Encode("what the payload means (Kind.Means)", means, MaxPayload)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// same reports whether a task that is remembered, of the same kind, is the same as one
// that is asked for. By what both declare to mean; or if the payloads are the same bytes;
// or if what is remembered, read and written by this program, is: another language
// writes the same JSON in its own way.
func (k *Kind[T]) same(remembered, declared []byte, asked stored) bool {
	switch {
	case declared != nil && asked.fingerprint != nil:
		return bytes.Equal(declared, asked.fingerprint)
	case bytes.Equal(remembered, asked.payload):
		return true
	case asked.fingerprint != nil:
		payload, err := decode[T](remembered)
		if err != nil {
			return false
		}
		means, err := fingerprint(k.means(payload))
		return err == nil && bytes.Equal(means, asked.fingerprint)
	}
	payload, err := decodeAll[T](remembered)
	if err != nil {
		return false
	}
	again, err := encode(payload)
	return err == nil && bytes.Equal(again, asked.payload)
}
