package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// client is one connection with one request at a time. It knows as little HTTP
// as it can: what it uses, the servers lack, since they share the machine.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// requestLimit is far above what any subject takes for the slow key.
const requestLimit = 60 * time.Second

func dial(ctx context.Context, addr string) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReader(conn)}, nil
}

func dialAll(ctx context.Context, addr string, n int) ([]*client, error) {
	var all []*client
	for range n {
		c, err := dial(ctx, addr)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func closeAll(all []*client) {
	for _, c := range all {
		c.conn.Close()
	}
}

// order sends POST /orders and returns the status and the body.
func (c *client) order(key, body string) (status int, answered []byte, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(requestLimit)); err != nil {
		return 0, nil, err
	}
	c.out = fmt.Appendf(c.out[:0], "POST /orders HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, nil, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < len("HTTP/1.1 201") {
		return 0, nil, fmt.Errorf("no status line: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, err
	}
	length, err := c.header()
	if err != nil {
		return 0, nil, err
	}
	answered = make([]byte, length)
	_, err = io.ReadFull(c.in, answered)
	return status, answered, err
}

var contentLength = []byte("content-length:")

// header reads to the end of an answer's header and returns its body's length.
func (c *client) header() (length int, err error) {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return length, nil
		}
		if n := len(contentLength); len(line) > n && bytes.EqualFold(line[:n], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[n:]))); err != nil {
				return 0, err
			}
		}
	}
}
