package faultproxy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Postgres is a proxy in front of a PostgreSQL server, or of a PgBouncer. Its
// methods may be called concurrently. Close it.
type Postgres struct {
	gate
	record record
	url    url.URL
}

// NewPostgres starts a proxy on a port of its own in front of the server of
// upstream, a URL such as postgres://user:password@127.0.0.1:5432/name. The
// server must be on the loopback interface and is spoken to without TLS: an
// sslmode other than disable, allow and prefer is an error.
func NewPostgres(upstream string) (*Postgres, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		// The parser's error repeats the URL, and that holds the password.
		return nil, errors.New("faultproxy: the upstream is not a URL")
	}
	if (u.Scheme != "postgres" && u.Scheme != "postgresql") || u.Hostname() == "" {
		return nil, errors.New("faultproxy: the upstream must be postgres://host:port/name")
	}
	query := u.Query()
	switch mode := query.Get("sslmode"); mode {
	case "", "disable", "allow", "prefer":
		query.Set("sslmode", "disable")
	default:
		return nil, fmt.Errorf("faultproxy: sslmode %s cannot be read through; say disable", mode)
	}
	p := &Postgres{}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432"))
	if err := p.start(address, p.serve); err != nil {
		return nil, err
	}
	p.url = *u
	p.url.Host, p.url.RawQuery = p.Addr(), query.Encode()
	return p, nil
}

// URL is the upstream's URL by way of the proxy. It holds the password.
func (p *Postgres) URL() string { return p.url.String() }

// Add puts a rule to work. At a message that several rules choose, the one that
// was added first acts; a rule that has been used up is forgotten.
func (p *Postgres) Add(r Rule) *Armed {
	a := arm(r)
	p.record.add(a)
	return a
}

// serve runs one connection to its end.
func (p *Postgres) serve(conn *pair) {
	first, err := p.greet(conn)
	if err != nil || !p.connect(conn) {
		return
	}
	s := newSession(p, conn)
	s.run(first)
}
