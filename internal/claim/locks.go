package claim

import (
	"crypto/sha256"
	"encoding/binary"
)

// Locks are the advisory locks of a key and of a request under it, for whoever
// else takes them or looks for their owner. Take them as key_claim does: the
// request's first and shared, the key's second and alone, and neither waiting.
func Locks(scope, key string, fingerprint []byte) (ofKey, ofRequest int64) {
	return lockKey(scope, key), lockOf([]byte(scope), []byte(key), fingerprint)
}

// lockKey is the advisory lock of a key. A collision makes one key wait for
// another and nothing worse.
func lockKey(scope, key string) int64 { return lockOf([]byte(scope), []byte(key)) }

// lockRequest is the advisory lock of a request under a key.
func (in Intent) lockRequest() int64 {
	return lockOf([]byte(in.Scope), []byte(in.Key), in.Fingerprint.Sum)
}

// lockOf digests its parts, framed by their lengths.
func lockOf(parts ...[]byte) int64 {
	digest := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		digest.Write(length[:])
		digest.Write(part)
	}
	return int64(binary.BigEndian.Uint64(digest.Sum(nil)))
}
