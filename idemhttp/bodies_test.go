package idemhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

// head begins a request whose body has size bytes.
func head(path, key string, size int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n", path, key, size)
}

// write sends more of a request.
func write(t *testing.T, conn net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(conn, s); err != nil {
		t.Fatal(err)
	}
}

func TestD7_bodySlowerThanTheReadTimeoutClaimsNothing(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.server = httptest.NewUnstartedServer(r.mux)
	r.server.Config.ReadTimeout = 300 * time.Millisecond
	r.server.Config.ErrorLog = discard
	r.server.Start()
	t.Cleanup(r.server.Close)

	conn := r.dial()
	defer func() { _ = conn.Close() }()
	write(t, conn, head("/orders", "k", len(body))+body[:len(body)-1]) // and no more
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	said, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != 400 || !strings.Contains(string(said), `"body-incomplete"`) {
		t.Errorf("got %d %s, want 400 body-incomplete", res.StatusCode, said)
	}
	if n := runs.Load(); n != 0 {
		t.Errorf("the handler ran %d times, want never", n)
	}
	r.wantFree()
	r.want(r.send(post("/orders", "k", body)), 201, "")
}

func TestD7_bodyOverTheLimitIsRefused(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/x", idemhttp.Route{MaxBody: 1000}, func(http.ResponseWriter, *http.Request) { runs.Add(1) })
	r.serve()
	over := strings.Repeat("x", 1001)
	chunked := "POST /x HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, request := range map[string]string{
		"announced":              head("/x", "k", 1001) + over,
		"announced and not sent": head("/x", "k", 1<<40),
		"chunked":                chunked + "3e9\r\n" + over + "\r\n0\r\n\r\n",
		"chunked in two":         chunked + "1f4\r\n" + over[:500] + "\r\n1f5\r\n" + over[:501] + "\r\n0\r\n\r\n",
		"chunked without an end": chunked + "3e9\r\n" + over,
	} {
		got := r.wire(request)
		if got.status != 413 || got.problem() != "body-too-large" {
			t.Errorf("%s: got %d %q %v, want 413 body-too-large", name, got.status, got.body, got.err)
		}
	}
	if n := runs.Load(); n != 0 {
		t.Errorf("the handler ran %d times, want never", n)
	}
	r.wantFree()
	if got := r.wire(chunked + "3e8\r\n" + over[:1000] + "\r\n0\r\n\r\n"); got.status != 200 {
		t.Errorf("a body of the largest size, chunked: got %d %q %v", got.status, got.body, got.err)
	}
	eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
}

func TestD7_thousandsOfSlowConnectionsHoldLittle(t *testing.T) {
	r := newRig(t, func(c *idemhttp.Config) { c.MaxBuffers = 4 << 20 })
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{MaxHeld: 1 << 20}, createOrder(&runs))
	var begun atomic.Int64
	r.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { begun.Add(1); next.ServeHTTP(w, req) })
	}
	r.serve()
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	const slowOnes = 2000
	conns := make([]net.Conn, slowOnes)
	for i := range conns {
		conns[i] = r.dial()
		if err := conns[i].SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conns[i].Close() }()
		write(t, conns[i], head("/orders", fmt.Sprint("slow", i), 1<<20)+"{") // 1 MiB announced, a byte sent
	}
	eventually(t, "all slow bodies have begun", func() bool { return begun.Load() == slowOnes })
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapInuse) - int64(before.HeapInuse); grown > 128<<20 {
		t.Errorf("the heap has grown by %d MiB, want at most 128: %d MiB are announced", grown>>20, slowOnes)
	}
	for i := range 50 {
		r.want(r.send(post("/orders", fmt.Sprint("other", i), body)), 201, "")
	}
	if n := r.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("the slow ones hold %d connections to the database, want none", n)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
	if n := runs.Load(); n != 50 {
		t.Errorf("the handler ran %d times, want 50", n)
	}
	r.wantRows("select count(*) from idem.idempotency_keys", 50)
}

func TestD7_exhaustedBuffersAreUnavailable(t *testing.T) {
	r := newRig(t, func(c *idemhttp.Config) { c.MaxBuffers = 1 << 20 })
	answer := strings.Repeat("x", 600_000)
	var runs atomic.Int64
	route := idemhttp.Route{MaxBody: 1 << 20, MaxHeld: 1 << 20}
	r.handle("/upload", route, func(w http.ResponseWriter, _ *http.Request) { runs.Add(1); w.WriteHeader(201) })
	r.handle("/large", route, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(201)
		_, _ = io.WriteString(w, answer)
	})
	r.serve()
	conn := r.dial()
	write(t, conn, head("/upload", "slow", 1<<20)+strings.Repeat("x", 600_000))
	eventually(t, "the slow body is held", func() bool { return r.guard.Buffered() >= 600_000 })

	for path, s := range map[string]sending{"/upload": post("/upload", "k", strings.Repeat("y", 400_000)), "/large": post("/large", "l", "")} {
		got := r.send(s)
		r.want(got, 503, "unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Errorf("%s: Retry-After is missing", path)
		}
	}
	r.wantFree()
	r.wantRows("select count(*) from orders", 0)
	r.want(r.send(post("/upload", "small", "y")), 201, "") // what fits is served
	_ = conn.Close()
	eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
	r.want(r.send(post("/upload", "k", strings.Repeat("y", 400_000))), 201, "")
	if got := r.send(post("/large", "l", "")); got.status != 201 || got.body != answer {
		t.Errorf("got %d, %d bytes", got.status, len(got.body))
	}
	r.wantRows("select count(*) from orders", 1)
}
