package idemhttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// dial opens a connection of its own to the server, for bytes that no
// well-behaved client sends.
func (r *rig) dial() *net.TCPConn {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// wire sends bytes as they are, says that no more will come, and reads the
// answer.
func (r *rig) wire(request string) reply {
	r.t.Helper()
	conn := r.dial()
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		return reply{err: err}
	}
	if err := conn.CloseWrite(); err != nil {
		return reply{err: err}
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(body), err: err}
}

// cut sends bytes as they are and closes the connection without waiting for an
// answer.
func (r *rig) cut(request string) {
	r.t.Helper()
	conn := r.dial()
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Error(err)
	}
	if err := conn.Close(); err != nil {
		r.t.Error(err)
	}
}
