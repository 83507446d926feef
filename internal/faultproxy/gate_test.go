package faultproxy_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

func TestNewPostgres_refusesWhatItCannotReadOrMustNotReach(t *testing.T) {
	for _, upstream := range []string{"", "127.0.0.1:5432", "http://127.0.0.1/x", "postgres:///x",
		"postgres://u:secret@127.0.0.1:5432/x?sslmode=require", "postgres://u:secret@[::1/x"} {
		p, err := faultproxy.NewPostgres(upstream)
		if err == nil {
			t.Errorf("%q: no error", upstream)
			_ = p.Close()
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password: %v", upstream, err)
		}
	}
	// An address for documentation: if the proxy dialled it, the client would wait.
	p := newPostgres(t, "postgres://u@192.0.2.1:5432/x")
	if _, err := pgx.Connect(t.Context(), p.URL()); err == nil {
		t.Error("a server on another host was reached")
	}
}

func TestPostgres_refuseMakesTheDatabaseLookAway(t *testing.T) {
	r := newRig(t)
	before := r.connect(t)
	r.Refuse(true)
	if conn, err := pgx.Connect(t.Context(), r.URL()); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a new connection was let in")
	}
	if err := before.Ping(t.Context()); err != nil {
		t.Errorf("a connection that existed: %v", err)
	}
	r.Refuse(false)
	if err := r.connect(t).Ping(t.Context()); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestPostgres_cutAllEndsConnectionsInEveryState(t *testing.T) {
	r := newRig(t)
	idle, held, dropped := r.connect(t), r.connect(t), r.connect(t)
	hold := r.Add(faultproxy.Rule{Name: "hold", When: faultproxy.Executes("select 'held'"), Do: faultproxy.Hold()})
	drop := r.Add(faultproxy.Rule{Name: "drop", When: faultproxy.Executes("select 'dropped'"), Do: faultproxy.Drop()})
	done := make(chan error, 2)
	go func() { _, err := held.Exec(context.Background(), "select 'held'"); done <- err }()
	go func() { _, err := dropped.Exec(context.Background(), "select 'dropped'"); done <- err }()
	wantReached(t, hold)
	wantReached(t, drop)
	r.CutAll()
	r.wantSessions(t, 0)
	for range 2 {
		if err := wait(t, done); err == nil {
			t.Error("a statement on a connection that was cut succeeded")
		}
	}
	if err := idle.Ping(t.Context()); err == nil {
		t.Error("a connection that was idle was not cut")
	}
	if err := r.connect(t).Ping(t.Context()); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

// Close with connections that are idle, held, dropped, and in the middle of a
// large answer. That no goroutine is left is checked when all tests have run.
func TestPostgres_closeLeavesNothing(t *testing.T) {
	r := newRig(t)
	idle, held, busy := r.connect(t), r.connect(t), r.connect(t)
	hold := r.Add(faultproxy.Rule{Name: "hold", When: commits, Do: faultproxy.Hold()})
	done := marking(context.Background(), held, 1)
	wantReached(t, hold)
	rows, err := busy.Query(context.Background(), "select repeat('x', 1000000) from generate_series(1, 1000)")
	if err != nil || !rows.Next() {
		t.Fatal("no row: ", err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := wait(t, done); err == nil {
		t.Error("what was held succeeded")
	}
	for rows.Next() {
	}
	if rows.Err() == nil {
		t.Error("a gigabyte arrived through a closed proxy")
	}
	if err := idle.Ping(t.Context()); err == nil {
		t.Error("an idle connection still works")
	}
	if conn, err := net.DialTimeout("tcp", r.Addr(), time.Second); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
	r.wantSessions(t, 0)
}

// Whoever speaks another protocol is cut off, and Close tells.
func TestPostgres_closeReportsWhatWasNoMessage(t *testing.T) {
	p, err := faultproxy.NewPostgres(pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes of an answer", n)
	}
	if err := p.Close(); err == nil {
		t.Error("Close reports nothing")
	}
}
