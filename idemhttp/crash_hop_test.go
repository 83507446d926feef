package idemhttp_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// bankHop is the network between the program and the bank.
type bankHop struct {
	bank string // host:port
	stop *crashStop
	hole atomic.Bool // what comes next is swallowed
}

// ServeHTTP takes a request to the bank and brings the reply back.
func (h *bankHop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h.pass(stepCallSent, r)
	conn, err := net.Dial("tcp", h.bank)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	onward := r.Clone(r.Context())
	onward.URL.Host, onward.Body = h.bank, io.NopCloser(bytes.NewReader(body))
	if err := onward.Write(conn); err != nil {
		panic(http.ErrAbortHandler)
	}
	h.pass(stepCallReceived, r)
	reply, err := http.ReadResponse(bufio.NewReader(conn), onward)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h.pass(stepCallDone, r)
	w.Header().Set("Content-Type", reply.Header.Get("Content-Type"))
	w.WriteHeader(reply.StatusCode)
	_, _ = w.Write(answer) // or the program has gone away
}

// pass stops at a step. A hole swallows one call, which its caller has to give up,
// and is none from then on.
func (h *bankHop) pass(step string, r *http.Request) {
	if h.stop.at(step) == orderCut {
		panic(http.ErrAbortHandler)
	}
	if h.hole.Load() {
		<-r.Context().Done()
		h.hole.Store(false)
		panic(http.ErrAbortHandler)
	}
}
