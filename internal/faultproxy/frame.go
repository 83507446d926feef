package faultproxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// maxHeld bounds how much of a message is held in memory; the rest flows
// through. It is more than any label needs.
const maxHeld = 64 << 10

var (
	// errUnwritable marks that the receiver is gone.
	errUnwritable = errors.New("the receiver is gone")
	// errFraming marks bytes that are no message.
	errFraming = errors.New("no message of the protocol")
)

// frame is a message as bytes, valid until the next is read.
type frame struct {
	kind byte   // 0: a first packet
	head []byte // with kind and length
	body []byte // as much as is held
	rest int    // the bytes of the body that are still to be read
}

func (f frame) size() int { return len(f.head) + len(f.body) + f.rest }

// flushFirst is a reader that writes out what waits to be written before it may
// block, so that nothing is kept back while the sender thinks.
type flushFirst struct {
	from net.Conn
	out  *bufio.Writer
}

func (r flushFirst) Read(b []byte) (int, error) {
	if err := r.out.Flush(); err != nil {
		return 0, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	return r.from.Read(b)
}

// framer reads messages from one connection and writes them to another.
type framer struct {
	in   *bufio.Reader
	out  *bufio.Writer
	head [5]byte
	held []byte
}

func newFramer(from, to net.Conn) framer {
	out := bufio.NewWriterSize(to, bufferSize)
	return framer{in: bufio.NewReaderSize(flushFirst{from, out}, bufferSize), out: out}
}

// next reads a message. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF if that is in the middle of one.
func (r *framer) next() (frame, error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return frame{}, err
	}
	size := int64(binary.BigEndian.Uint32(r.head[1:])) - 4
	if size < 0 || size >= 1<<30 { // PostgreSQL's own limit
		return frame{}, fmt.Errorf("%w: type %q, %d bytes", errFraming, r.head[0], size)
	}
	held := int(min(size, maxHeld))
	if cap(r.held) < held {
		r.held = make([]byte, held)
	}
	f := frame{kind: r.head[0], head: r.head[:], body: r.held[:held], rest: int(size) - held}
	if _, err := io.ReadFull(r.in, f.body); err != nil {
		return frame{}, err
	}
	return f, nil
}

// write forwards a message, reading what of it has not been read.
func (r *framer) write(f frame) error {
	_, _ = r.out.Write(f.head) // the writer keeps its first error
	if _, err := r.out.Write(f.body); err != nil {
		return fmt.Errorf("%w: %w", errUnwritable, err)
	}
	for f.rest > 0 {
		piece := f.body[:min(f.rest, len(f.body))]
		if _, err := io.ReadFull(r.in, piece); err != nil {
			return err
		}
		if _, err := r.out.Write(piece); err != nil {
			return fmt.Errorf("%w: %w", errUnwritable, err)
		}
		f.rest -= len(piece)
	}
	return nil
}

func (r *framer) flush() error {
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errUnwritable, err)
	}
	return nil
}
