package faultproxy

import (
	"fmt"
	"strings"
)

// Message is one message of the PostgreSQL protocol as the proxy saw it. It
// holds SQL, but neither parameters nor rows nor passwords.
type Message struct {
	Conn      int // connections are numbered from 1, in the order of arrival
	Direction Direction
	N         int    // the number of the message in its direction of its connection, from 1
	Type      string // as package pgproto3 names it: "Parse", "Execute", "CommandComplete"
	// SQL is the text of the statement that the message parses, binds,
	// describes, executes or closes, or that it is the answer to; empty where
	// there is none. Longer texts end at 4 KiB.
	SQL string
	// Tag is the command tag of a CommandComplete ("COMMIT"), the transaction's
	// status of a ReadyForQuery ("I", "T" or "E"), the SQLSTATE of an
	// ErrorResponse or a NoticeResponse; else empty.
	Tag   string
	Bytes int // on the wire, with header
}

// String describes the message in one line.
func (m Message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", m.Direction, m.Type)
	if m.Tag != "" {
		fmt.Fprintf(&b, " %s", m.Tag)
	}
	if m.SQL != "" {
		fmt.Fprintf(&b, " %q", brief(m.SQL))
	}
	return b.String()
}

// brief is enough of a statement to know it in a table.
func brief(sql string) string {
	const limit = 40
	words := []rune(strings.Join(strings.Fields(sql), " "))
	if len(words) <= limit {
		return string(words)
	}
	return string(words[:limit-1]) + "…"
}

// Executes matches the client's message that runs a statement which begins with
// prefix, letter case and space before it aside: an Execute or a Query. The
// statements after the first of a Query's text are not looked at.
func Executes(prefix string) func(Message) bool {
	prefix = strings.ToLower(prefix)
	return func(m Message) bool {
		return m.Direction == FromClient && (m.Type == "Execute" || m.Type == "Query") &&
			strings.HasPrefix(strings.ToLower(strings.TrimSpace(m.SQL)), prefix)
	}
}

// Completes matches the server's CommandComplete with the tag: with "COMMIT", a
// transaction that is committed while its client does not know.
func Completes(tag string) func(Message) bool {
	return func(m Message) bool {
		return m.Direction == FromServer && m.Type == "CommandComplete" && m.Tag == tag
	}
}

// Is matches messages of a direction and a type.
func Is(from Direction, typ string) func(Message) bool {
	return func(m Message) bool { return m.Direction == from && m.Type == typ }
}

// Nth matches the n-th message, from 1, of those that when matches. It counts,
// so it is good for one rule.
func Nth(n int, when func(Message) bool) func(Message) bool {
	return func(m Message) bool {
		if !when(m) {
			return false
		}
		n--
		return n == 0
	}
}
