package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5/pgproto3"
	"pgregory.net/rapid"
)

// conversation encodes messages as a client would.
func conversation(t interface{ Fatal(...any) }, messages ...pgproto3.FrontendMessage) (all []byte) {
	for _, m := range messages {
		var err error
		if all, err = m.Encode(all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// pour forwards all of in by a framer and returns what came out.
func pour(in io.Reader) ([]byte, int, error) {
	var out bytes.Buffer
	r := newFramer(conn{Reader: in}, conn{Writer: &out})
	for frames := 0; ; frames++ {
		f, err := r.next()
		if err == nil {
			err = r.write(f)
		}
		if err != nil {
			return out.Bytes(), frames, errors.Join(err, r.flush())
		}
	}
}

// conn is as much of a connection as a framer uses.
type conn struct {
	net.Conn
	io.Reader
	io.Writer
}

func (c conn) Read(b []byte) (int, error)  { return c.Reader.Read(b) }
func (c conn) Write(b []byte) (int, error) { return c.Writer.Write(b) }

// However the bytes of messages are cut into pieces, all come out, in order.
func TestFramer_passesEveryByteInEveryCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(maxHeld-20, maxHeld+20),
			rapid.IntRange(0, 300_000)), 0, 8).Draw(t, "sizes")
		var in []byte
		for i, size := range sizes {
			body := bytes.Repeat([]byte{byte(i + 1)}, size)
			in = append(in, conversation(t, &pgproto3.CopyData{Data: body}, &pgproto3.Sync{})...)
		}
		piece := rapid.IntRange(1, 100_000).Draw(t, "piece")
		out, frames, err := pour(&pieces{in, piece})
		if err != io.EOF && !errors.Is(err, io.EOF) {
			t.Fatalf("ended with %v, want EOF", err)
		}
		if frames != 2*len(sizes) || !bytes.Equal(in, out) {
			t.Fatalf("%d bytes in %d messages came out, want %d in %d", len(out), frames, len(in), 2*len(sizes))
		}
	})
}

// pieces is a reader that returns so many bytes at a time.
type pieces struct {
	rest  []byte
	piece int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.piece, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

func TestFramer_passesWhatIsWholeBeforeABrokenEnd(t *testing.T) {
	whole := conversation(t, &pgproto3.Query{String: "select 1"})
	for _, test := range []struct {
		tail []byte
		want error
	}{
		{[]byte{'Q', 0, 0}, io.ErrUnexpectedEOF},
		{[]byte{'Q', 0, 0, 0, 20, 's'}, io.ErrUnexpectedEOF},
		{[]byte{'Q', 0, 0, 0, 3}, errFraming},
		{[]byte{'Q', 0xff, 0xff, 0xff, 0xff}, errFraming},
		{[]byte{'Q', 0x7f, 0, 0, 0}, errFraming},
	} {
		in := append(bytes.Clone(whole), test.tail...)
		out, frames, err := pour(iotest.OneByteReader(bytes.NewReader(in)))
		if !errors.Is(err, test.want) || frames != 1 || !bytes.Equal(out, whole) {
			t.Errorf("%q: %d messages, %q, %v; want one and %v", test.tail, frames, out, err, test.want)
		}
	}
}

// What was read is forwarded before the framer waits for more.
func TestFramer_keepsNothingBackWhileItWaits(t *testing.T) {
	var out bytes.Buffer
	whole := conversation(t, &pgproto3.Query{String: "select 1"}, &pgproto3.Query{String: "select 2"})
	var seen []int
	source := &waiting{next: [][]byte{whole, whole[:3], whole[3:]}, wait: func() { seen = append(seen, out.Len()) }}
	r := newFramer(conn{Reader: source}, conn{Writer: &out})
	for {
		f, err := r.next()
		if err == nil {
			err = r.write(f)
		}
		if err != nil {
			break
		}
	}
	n := len(whole)
	if want := []int{0, n, n, 2 * n}; !equal(seen, want) {
		t.Errorf("forwarded before each wait: %v, want %v", seen, want)
	}
}

// waiting is a reader that calls wait before every read.
type waiting struct {
	next [][]byte
	wait func()
}

func (w *waiting) Read(b []byte) (int, error) {
	w.wait()
	if len(w.next) == 0 {
		return 0, io.EOF
	}
	n := copy(b, w.next[0])
	w.next = w.next[1:]
	return n, nil
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A label is made from whatever a client sends.
func FuzzLabels(f *testing.F) {
	f.Add([]byte("Q"), []byte("select 1\x00"))
	f.Add([]byte("PBDEC"), []byte("a\x00b\x00c\x00"))
	f.Add([]byte("PES1EZRZ"), []byte{})
	f.Fuzz(func(t *testing.T, kinds, body []byte) {
		l := newLabels()
		for i, kind := range kinds {
			if kind == 0 {
				continue // a first packet is checked when it is read
			}
			m := Message{Direction: FromClient + Direction(i%2)}
			l.label(&m, frame{kind: kind, body: body})
			if m.Type == "" {
				t.Errorf("%s %q has no type", m.Direction, kind)
			}
			if len(m.SQL) > maxSQL {
				t.Errorf("a label of %d bytes", len(m.SQL))
			}
		}
	})
}

// Bounds hold for a client that never reads and never closes what it names.
func TestLabels_areBounded(t *testing.T) {
	l := newLabels()
	for i := range 3 * maxPending {
		body := append([]byte{byte(i), byte(i >> 8), 1}, 0)
		m := Message{Direction: FromClient}
		l.label(&m, frame{kind: 'P', body: append(body, "select 1\x00"...)})
	}
	if len(l.statements) > maxNames || len(l.pending) > maxPending {
		t.Errorf("%d statements and %d requests are remembered", len(l.statements), len(l.pending))
	}
	m := Message{Direction: FromServer}
	l.label(&m, frame{kind: '1'})
	if m.SQL != "" {
		t.Errorf("a reply that cannot be known is said to answer %q", m.SQL)
	}
}
