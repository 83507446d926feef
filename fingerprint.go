package idem

import (
	"crypto/sha256"
	"encoding/binary"
)

// Fingerprint says what "the same request" means: two requests under one key
// are the same if their fingerprints are. Version is the format it was made in
// and is stored beside it, so that fingerprints of an older format stay
// comparable.
type Fingerprint struct {
	Version int16
	Sum     []byte // 32 bytes
}

// The formats of fingerprints. Numbers are never used again.
const (
	FingerprintRaw  int16 = 1 // the parts of the request as they came
	FingerprintJSON int16 = 2 // the same with the body in canonical JSON (RFC 8785)
	FingerprintFunc int16 = 3 // method, path and what the program's own function gave
)

// NewFingerprint digests parts with SHA-256. Every part is framed by its length,
// so that parts which join to the same bytes at other boundaries differ. Safe
// for concurrent use.
func NewFingerprint(version int16, parts ...[]byte) Fingerprint {
	digest := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		digest.Write(length[:])
		digest.Write(part)
	}
	return Fingerprint{Version: version, Sum: digest.Sum(nil)}
}
