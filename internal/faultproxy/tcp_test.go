package faultproxy_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
)

// echo is a server that reads every connection to its end, answers with all that
// it was sent, and tells for each what arrived and how it ended.
type echo struct {
	listener net.Listener
	arrived  chan arrival
}

type arrival struct {
	bytes string
	err   error
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener, arrived: make(chan arrival, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return e
}

func (e *echo) serve(conn net.Conn) {
	all, err := io.ReadAll(conn)
	_, _ = conn.Write(all) // the client may have gone
	_ = conn.Close()
	e.arrived <- arrival{string(all), err}
}

func newTCP(t *testing.T, upstream string, plan faultproxy.Plan) *faultproxy.TCP {
	t.Helper()
	p, err := faultproxy.NewTCP(upstream, 1, plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// talk sends text, says that this is all, and reads to the end.
func talk(address, text string) (string, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err // it may have been refused already
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	_ = conn.(*net.TCPConn).CloseWrite() // fails if it has been cut
	back, err := io.ReadAll(conn)
	return string(back), err
}

func (e *echo) got(t *testing.T) arrival {
	t.Helper()
	select {
	case a := <-e.arrived:
		return a
	case <-time.After(patience):
		t.Fatal("the server saw no end of the connection")
		return arrival{}
	}
}

func TestTCP_faults(t *testing.T) {
	const text = "0123456789"
	for _, test := range []struct {
		name  string
		fault faultproxy.Fault
		up    string // what the server gets
		down  string // what the client gets
		want  faultproxy.Counts
	}{
		{"none", faultproxy.Fault{}, text, text, faultproxy.Counts{BytesUp: 10, BytesDown: 10}},
		{"cut up after 4", faultproxy.Fault{Kind: faultproxy.CutUp, After: 4}, "0123", "",
			faultproxy.Counts{Cuts: 1, BytesUp: 4}},
		{"cut up at the first byte", faultproxy.Fault{Kind: faultproxy.CutUp}, "", "", faultproxy.Counts{Cuts: 1}},
		{"cut down after 4", faultproxy.Fault{Kind: faultproxy.CutDown, After: 4}, text, "0123",
			faultproxy.Counts{Cuts: 1, BytesUp: 10, BytesDown: 4}},
		{"cut down at the first byte", faultproxy.Fault{Kind: faultproxy.CutDown}, text, "",
			faultproxy.Counts{Cuts: 1, BytesUp: 10}},
		{"cut after more than there is", faultproxy.Fault{Kind: faultproxy.CutUp, After: 11}, text, text,
			faultproxy.Counts{BytesUp: 10, BytesDown: 10}},
		{"half-close after 4", faultproxy.Fault{Kind: faultproxy.HalfClose, After: 4}, "0123", "0123",
			faultproxy.Counts{HalfCloses: 1, BytesUp: 4, BytesDown: 4}},
		{"delay", faultproxy.Fault{Delay: 50 * time.Millisecond}, text, text,
			faultproxy.Counts{Delays: 2, BytesUp: 10, BytesDown: 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEcho(t)
			p := newTCP(t, e.listener.Addr().String(), faultproxy.Script(test.fault))
			begun := time.Now()
			back, err := talk(p.Addr(), text)
			if err != nil || back != test.down {
				t.Errorf("the client got %q, %v; want %q", back, err, test.down)
			}
			if took := time.Since(begun); took < 2*test.fault.Delay {
				t.Errorf("took %v, want %v at least", took, 2*test.fault.Delay)
			}
			if a := e.got(t); a.bytes != test.up {
				t.Errorf("the server got %q, %v; want %q", a.bytes, a.err, test.up)
			}
			test.want.Connections = 1
			eventually(t, func() bool { return p.Counts() == test.want }, func() {
				t.Errorf("counts %+v, want %+v", p.Counts(), test.want)
			})
			if back, err := talk(p.Addr(), text); err != nil || back != text {
				t.Errorf("the next connection got %q, %v; want %q", back, err, text)
			}
		})
	}
}

func TestTCP_resetIsNoOrderlyEnd(t *testing.T) {
	e := newEcho(t)
	p := newTCP(t, e.listener.Addr().String(), faultproxy.Script(
		faultproxy.Fault{Kind: faultproxy.CutDown, After: 4, Reset: true}, faultproxy.Fault{Kind: faultproxy.Refuse}))
	if _, err := talk(p.Addr(), "0123456789"); err == nil {
		t.Error("a reset looked like an end")
	}
	if back, err := talk(p.Addr(), "0123456789"); err == nil {
		t.Errorf("a refused connection got %q", back)
	}
	if got := p.Counts(); got.Cuts != 1 || got.Refused != 1 {
		t.Errorf("counts %+v, want 1 cut and 1 refused", got)
	}
}

func TestTCP_passesLargeBodiesBothWays(t *testing.T) {
	e := newEcho(t)
	p := newTCP(t, e.listener.Addr().String(), nil)
	text := strings.Repeat("0123456789abcdef", 1<<18)
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, text)
		sent <- errors.Join(err, conn.(*net.TCPConn).CloseWrite())
	}()
	back, err := io.ReadAll(conn)
	if err = errors.Join(err, wait(t, sent)); err != nil || string(back) != text {
		t.Errorf("%d of %d bytes came back, %v", len(back), len(text), err)
	}
}

// A server that is killed and comes back on another port.
func TestTCP_retargetFindsTheServerAgain(t *testing.T) {
	first, second := newEcho(t), newEcho(t)
	p := newTCP(t, first.listener.Addr().String(), nil)
	if back, err := talk(p.Addr(), "one"); back != "one" {
		t.Fatal(back, err)
	}
	if err := first.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if back, err := talk(p.Addr(), "two"); err == nil {
		t.Errorf("with the server away: %q and no error", back)
	}
	p.Retarget(second.listener.Addr().String())
	if back, err := talk(p.Addr(), "three"); back != "three" {
		t.Error(back, err)
	}
}

func TestWeather_isTheSameForTheSameSeed(t *testing.T) {
	plan := faultproxy.Weather{Refuse: 0.1, CutUp: 0.2, CutDown: 0.2, HalfClose: 0.1, Slow: 0.5, Delay: time.Second}.Plan()
	kinds := map[faultproxy.Kind]int{}
	slow := 0
	for conn := range 1000 {
		a := plan(conn, rand.New(rand.NewPCG(7, uint64(conn))))
		b := plan(conn, rand.New(rand.NewPCG(7, uint64(conn))))
		if a != b {
			t.Fatalf("connection %d: %+v, then %+v", conn, a, b)
		}
		kinds[a.Kind]++
		if a.Delay > 0 {
			slow++
		}
		if a.After < 0 || a.After >= 2000 || a.Delay > time.Second {
			t.Errorf("connection %d: %+v is out of bounds", conn, a)
		}
	}
	for kind, share := range map[faultproxy.Kind]int{faultproxy.None: 400, faultproxy.Refuse: 100,
		faultproxy.CutUp: 200, faultproxy.CutDown: 200, faultproxy.HalfClose: 100} {
		if got := kinds[kind]; got < share-60 || got > share+60 {
			t.Errorf("kind %d at %d of 1,000 connections, want about %d", kind, got, share)
		}
	}
	if slow < 430 || slow > 570 {
		t.Errorf("%d of 1,000 connections are slow, want about 500", slow)
	}
}

// Real clients and a real server in bad weather: an answer that arrives whole is
// the right one, the counts add up, and good weather is good at once.
func TestTCP_badWeatherForHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, "got %s", body)
	}))
	t.Cleanup(server.Close)
	weather := faultproxy.Weather{Refuse: 0.2, CutUp: 0.3, CutDown: 0.3, HalfClose: 0.2, Within: 1000,
		Slow: 0.3, Delay: 3 * time.Millisecond}
	p := newTCP(t, server.Listener.Addr().String(), weather.Plan())
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(client.CloseIdleConnections)
	send := func(text string) error {
		r, err := client.Post("http://"+p.Addr(), "text/plain", strings.NewReader(text))
		if err != nil {
			return err
		}
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return err
		}
		if r.StatusCode == http.StatusBadRequest {
			return errors.New("half a request arrived") // half-closed
		}
		if string(body) != "got "+text {
			t.Errorf("the answer to %q is %q", text, body)
		}
		return nil
	}
	failed := 0
	for i := range 200 {
		if send(fmt.Sprint("message ", i)) != nil {
			failed++
		}
	}
	got := p.Counts()
	if failed == 0 || failed == 200 || got.Cuts == 0 || got.Refused == 0 || got.Delays == 0 || got.HalfCloses == 0 {
		t.Errorf("%d of 200 failed, counts %+v; want some of each", failed, got)
	}
	p.SetPlan(nil)
	p.CutAll()
	client.CloseIdleConnections()
	for i := range 50 {
		if err := send(fmt.Sprint("calm ", i)); err != nil {
			t.Errorf("in good weather: %v", err)
		}
	}
}
