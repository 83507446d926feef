package idemhttp

import "strings"

// streams reports whether a request of this media type asks for an answer that
// is a stream: gRPC in all its forms, and the streams of the Connect protocol.
// What must not leave before the commit cannot be a stream.
func streams(mediaType string) bool {
	return strings.HasPrefix(mediaType, "application/grpc") || strings.HasPrefix(mediaType, "application/connect+")
}
