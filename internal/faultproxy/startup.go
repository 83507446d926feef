package faultproxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The codes of a first packet that is not a protocol version.
const (
	cancelCode = 80877102
	tlsCode    = 80877103
	gssCode    = 80877104
)

// maxStartup bounds a first packet, as PostgreSQL does.
const maxStartup = 10_000

// greet reads the client's first packet that concerns the server: the startup or
// a cancel request. Wishes for encryption are answered here, with no; rules and
// the record do not see them.
func (p *Postgres) greet(conn *pair) (frame, error) {
	_ = conn.client.SetReadDeadline(time.Now().Add(startupLimit)) // fails if closed, as does the read
	for range 3 {
		f, err := p.readStartup(conn.client)
		if err != nil {
			return f, err
		}
		if code := f.code(); code != tlsCode && code != gssCode {
			_ = conn.client.SetReadDeadline(time.Time{})
			return f, nil
		}
		if _, err := conn.client.Write([]byte("N")); err != nil {
			return f, err
		}
	}
	err := errors.New("a client that asks for encryption again and again")
	p.fail(err)
	return frame{}, err
}

// readStartup reads one packet, which has a length and no type.
func (p *Postgres) readStartup(client io.Reader) (frame, error) {
	f := frame{head: make([]byte, 4)}
	if _, err := io.ReadFull(client, f.head); err != nil {
		return f, err // a client that only looked whether the port is open
	}
	size := int(binary.BigEndian.Uint32(f.head)) - 4
	if size < 4 || size > maxStartup {
		err := fmt.Errorf("a first packet of %d bytes", size)
		p.fail(err)
		return f, err
	}
	f.body = make([]byte, size)
	_, err := io.ReadFull(client, f.body)
	return f, err
}

// code is the protocol version or the request of a first packet.
func (f frame) code() uint32 { return binary.BigEndian.Uint32(f.body) }
