package faultproxy

import (
	"fmt"
	"time"
)

// Action is what is done at a message. Its zero value lets the message pass,
// which is good for knowing that it was there.
type Action struct {
	kind  kind
	after bool
	drop  [2]bool // client's direction, server's
	delay time.Duration
}

type kind int

const (
	pass kind = iota
	cut
	cutReset
	cutClient
	cutServer
	delay
	hold
	late
	drop
)

// Cut ends the connection on both sides. The message is lost; all before it
// arrives, then the end.
func Cut() Action { return Action{kind: cut} }

// Reset is Cut with a RST: what was forwarded before may be lost, too.
func Reset() Action { return Action{kind: cutReset} }

// CutClient ends the connection for the client; the message and all after it are
// lost. The server hears nothing of it, as if the client's host had vanished,
// until it ends the connection itself.
func CutClient() Action { return Action{kind: cutClient} }

// CutServer ends the connection for the server; the message and all after it are
// lost. The client hears nothing of it, as if the server's host had vanished.
func CutServer() Action { return Action{kind: cutServer} }

// Delay holds the message for d. What follows in its direction waits behind it,
// the end of the connection too; the other direction flows.
func Delay(d time.Duration) Action { return Action{kind: delay, delay: d} }

// Hold is Delay until Armed.Release, or until the server ends the connection.
func Hold() Action { return Action{kind: hold} }

// Late ends the connection for the client, as CutClient, but what the client has
// sent is only late: the message, what follows it and the client's own end reach
// the server after Armed.Release. At a server's message nothing is held.
//
// A driver that loses its connection may send a cancel request on a new one, as
// pgx does, which arrives first and meets what the server still works on. Where
// it must not, cut it: Rule{When: Is(FromClient, "CancelRequest"), Times: -1,
// Do: Cut()}.
func Late() Action { return Action{kind: late} }

// Drop loses the message and all that follows in these directions, without a
// word to anybody: packets are dropped, and so is the end of the connection.
// Without a direction, both are lost. A message whose own direction is not
// dropped passes.
func Drop(from ...Direction) Action {
	a := Action{kind: drop, drop: [2]bool{len(from) == 0, len(from) == 0}}
	for _, d := range from {
		a.drop[d-FromClient] = true
	}
	return a
}

// After lets the message pass first, and does a when it has left the proxy:
// After(Drop(FromServer)) delivers it and loses the reply.
func After(a Action) Action {
	a.after = true
	return a
}

// String names the action.
func (a Action) String() string {
	name := [...]string{"pass", "cut", "reset", "cut client", "cut server", "delay", "hold", "late", "drop"}[a.kind]
	switch {
	case a.kind == delay:
		name = fmt.Sprintf("delay %v", a.delay)
	case a.kind == drop && a.drop == [2]bool{true, false}:
		name = "drop from client"
	case a.kind == drop && a.drop == [2]bool{false, true}:
		name = "drop from server"
	}
	if a.after {
		name = "after it, " + name
	}
	return name
}
