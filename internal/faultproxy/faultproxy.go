// Package faultproxy puts a broken network between a program and its server, on
// the loopback interface only. Postgres understands the PostgreSQL wire protocol
// and does its faults at a message of one's choice, so that a test can say "cut
// before COMMIT is sent". TCP knows bytes only and does its faults by plan or by
// seeded chance; it is made for HTTP.
//
// What was forwarded before a fault has left the proxy when the fault happens:
// a cut is an orderly end of the stream, after all that came before it, unless a
// Reset is asked for.
package faultproxy

import "time"

const (
	// lingerLimit bounds how long a cut connection is read, and what it says
	// thrown away, before it is closed. Closing at once would send a RST, which
	// may destroy what was forwarded before the cut and has not been read yet.
	lingerLimit = time.Second
	// dialLimit bounds the connection to the upstream. It is on this machine.
	dialLimit = 5 * time.Second
	// startupLimit bounds the wait for a client's first packet.
	startupLimit = 10 * time.Second
	// maxPairs bounds the connections at a time; more are refused. It is three
	// times what the PostgreSQL of the tests admits.
	maxPairs = 1_000
	// bufferSize is what a direction reads at once. Four of them per connection.
	bufferSize = 32 << 10
)

// Direction is where a message or a byte comes from.
type Direction int

// The directions of a connection.
const (
	FromClient Direction = iota + 1
	FromServer
)

// String is "client" or "server".
func (d Direction) String() string {
	switch d {
	case FromClient:
		return "client"
	case FromServer:
		return "server"
	default:
		return "neither"
	}
}
