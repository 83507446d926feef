package faultproxy

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// maxSQL bounds the text of a label. Idem's longest statement has 2 KiB.
	maxSQL = 4 << 10
	// maxNames bounds the prepared statements, and the portals, of a connection
	// that are remembered by name; pgx keeps 512. What is beyond has no SQL.
	maxNames = 2_000
	// maxPending bounds the requests of a connection that have no reply. Once
	// there were more, no reply on it has SQL.
	maxPending = 10_000
)

// labels knows what runs on one connection: which SQL a name stands for, and
// which request the server answers next.
type labels struct {
	mu         sync.Mutex
	statements map[string]string
	portals    map[string]string
	pending    []request // sent and not answered, in order
	running    string    // the SQL that was executed last
	lost       bool      // there were too many
	auth       uint32    // what the server asked for last
}

// request is a client's message that has a reply of its own.
type request struct {
	kind byte
	sql  string
}

func newLabels() *labels {
	return &labels{statements: map[string]string{}, portals: map[string]string{}}
}

// label fills in Type, SQL and Tag of a message.
func (l *labels) label(m *Message, f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case f.kind == 0:
		m.Type = startupType(f.code())
	case m.Direction == FromClient:
		m.Type = frontendType(f.kind, l.auth)
		m.SQL = l.request(f.kind, f.body)
	default:
		m.Type = backendType(f.kind, f.body)
		m.SQL = l.reply(f.kind, f.body)
		m.Tag = tag(f.kind, f.body)
	}
}

// request notes a client's message and returns the SQL that it is about.
func (l *labels) request(kind byte, body []byte) (sql string) {
	switch kind {
	case 'Q':
		sql, _ = text(body)
		l.running = sql
	case 'P':
		name, rest := text(body)
		sql, _ = text(rest)
		remember(l.statements, name, sql)
	case 'B':
		portal, rest := text(body)
		statement, _ := text(rest)
		sql = l.statements[statement]
		remember(l.portals, portal, sql)
	case 'E':
		portal, _ := text(body)
		sql = l.portals[portal]
		l.running = sql
	case 'D', 'C':
		sql = l.named(body, kind == 'C')
	case 'F', 'S':
	case 'd', 'c', 'f': // of a COPY
		return l.running
	default:
		return "" // it has no reply
	}
	if l.lost = l.lost || len(l.pending) == maxPending; l.lost {
		l.pending = nil
		return sql
	}
	l.pending = append(l.pending, request{kind, sql})
	return sql
}

// named is the SQL that a Describe or a Close is about.
func (l *labels) named(body []byte, forget bool) string {
	if len(body) == 0 {
		return ""
	}
	names := l.portals
	if body[0] == 'S' {
		names = l.statements
	}
	name, _ := text(body[1:])
	sql := names[name]
	if forget {
		delete(names, name)
	}
	return sql
}

// reply notes a server's message and returns the SQL that it answers.
func (l *labels) reply(kind byte, body []byte) string {
	if kind == 'R' && len(body) >= 4 {
		l.auth = binary.BigEndian.Uint32(body)
	}
	if len(l.pending) == 0 {
		return ""
	}
	head := l.pending[0]
	switch kind {
	case 'A', 'K', 'N', 'R', 'S', 'v': // they come at any time, and answer nothing
		return ""
	case 'E':
		l.skip(head.kind)
	case 'Z':
		l.skip(head.kind)
		l.pending = l.pending[1:]
		if len(l.pending) == 0 {
			l.pending = nil // lets go of the texts
		}
	default:
		if answers(head.kind, kind) {
			l.pending = l.pending[1:]
		}
	}
	return head.sql
}

// skip drops what the server skips after an error: all up to the next Sync.
func (l *labels) skip(head byte) {
	if head == 'Q' || head == 'F' {
		return // ended by its own ReadyForQuery
	}
	for len(l.pending) > 1 && l.pending[0].kind != 'S' {
		l.pending = l.pending[1:]
	}
}

// answers reports whether a reply ends the request.
func answers(request, reply byte) bool {
	switch request {
	case 'P':
		return reply == '1'
	case 'B':
		return reply == '2'
	case 'C':
		return reply == '3'
	case 'D':
		return reply == 'T' || reply == 'n'
	case 'E':
		return reply == 'C' || reply == 's' || reply == 'I'
	default:
		return false
	}
}

// tag is what a server's message says in a word.
func tag(kind byte, body []byte) string {
	switch kind {
	case 'C':
		word, _ := text(body)
		return word
	case 'Z':
		return string(body)
	case 'E', 'N':
		var e pgproto3.ErrorResponse
		if e.Decode(body) != nil {
			return ""
		}
		return e.Code
	default:
		return ""
	}
}

// text reads a string that a zero byte ends, maxSQL of it at most.
func text(body []byte) (string, []byte) {
	raw, rest, _ := bytes.Cut(body, []byte{0})
	return strings.ToValidUTF8(string(raw[:min(len(raw), maxSQL)]), ""), rest
}

func remember(names map[string]string, name, sql string) {
	if _, known := names[name]; known || len(names) < maxNames {
		names[name] = sql
	}
}
