package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxMessage bounds a message once it is unpacked, in bytes.
const maxMessage = 1 << 20

// sameMessage makes two calls the same if their messages are: protobuf has no one
// encoding of a message, above all not of maps, so a client that encodes a message
// again for its retry may send other bytes. The media type belongs to it, since an
// answer is replayed in the encoding that it has.
func sameMessage(r *http.Request, body []byte) ([]byte, error) {
	body, err := unpacked(r.Header.Get("Content-Encoding"), body)
	if err != nil {
		return nil, err
	}
	var message structpb.Struct
	mediaType := r.Header.Get("Content-Type")
	switch mediaType {
	case "application/json":
		err = protojson.Unmarshal(body, &message)
	case "application/proto":
		err = proto.Unmarshal(body, &message)
	default:
		err = errors.New("the media type is not application/json or application/proto")
	}
	if err != nil {
		return nil, errors.New("the body is not a message")
	}
	canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(&message)
	return append([]byte(mediaType+"\n"), canonical...), err
}

func unpacked(encoding string, body []byte) ([]byte, error) {
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, errors.New("the body is not gzip")
		}
		message, err := io.ReadAll(io.LimitReader(z, maxMessage+1))
		if err != nil || len(message) > maxMessage {
			return nil, errors.New("the body is not gzip, or too large")
		}
		return message, nil
	default:
		return nil, errors.New("the content encoding is not gzip")
	}
}
