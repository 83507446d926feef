package bank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Together these bound how long anybody can keep a request open.
const (
	// readHeaderTimeout is for a client that opens a connection and says nothing.
	readHeaderTimeout = 5 * time.Second
	// readTimeout is for a whole request with its body.
	readTimeout = 10 * time.Second
	// writeTimeout counts from the end of a request's header. It has to cover the
	// three delays that a charge may have, which a repeat may wait for.
	writeTimeout = readTimeout + 3*MaxDelay + 10*time.Second
	// idleTimeout keeps a connection for a client's next request.
	idleTimeout = time.Minute
	// maxHeaderBytes is many times the largest key.
	maxHeaderBytes = 8 << 10
	// shutdownLimit is for what is under way when the bank closes, whose delays end
	// at once. A connection without a request counts as under way for 5 s.
	shutdownLimit = 7 * time.Second
)

// Serve opens the log, listens, calls ready with its address (host:port), and is
// the bank until ctx ends. What is under way then is finished, without the rest
// of its delays. The error is nil after that; others say that the log is
// another's, cannot be read or cannot be written to, or that cfg cannot be.
func Serve(ctx context.Context, cfg Config, ready func(addr string)) (err error) {
	b, err := open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.log.close()) }()
	ln, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	ready(ln.Addr().String())
	return b.serve(ctx, ln)
}

// listen refuses what other machines could reach: whoever reaches a bank may
// charge, and set its faults.
func listen(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("bank: the address to listen on must be like 127.0.0.1:8001: %w", err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("bank: %q is no loopback address; it must be like 127.0.0.1:8001", address)
	}
	ln, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("bank: listen: %w", err)
	}
	return ln, nil
}

func (b *bank) serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           b.handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(b.logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	var err error
	select {
	case err := <-served:
		return fmt.Errorf("bank: serve: %w", err)
	case <-b.broken:
		b.commits.Lock()
		err = b.log.err
		b.commits.Unlock()
	case <-ctx.Done():
	}
	close(b.closing)
	closing, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	if late := server.Shutdown(closing); late != nil {
		err = errors.Join(err, fmt.Errorf("bank: requests were cut off: %w", late), server.Close())
	}
	<-served
	return err
}

// Server is a bank in this process, which tests use where they need not kill it.
type Server struct {
	URL  string
	stop context.CancelFunc
	done chan error
}

// Start starts a bank. It serves until Stop.
func Start(cfg Config) (*Server, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{stop: stop, done: make(chan error, 1)}
	addr := make(chan string, 1)
	go func() { s.done <- Serve(ctx, cfg, func(at string) { addr <- at }) }()
	select {
	case at := <-addr:
		s.URL = "http://" + at
		return s, nil
	case err := <-s.done:
		stop()
		return nil, err
	}
}

// Stop ends the bank and returns what Serve did. Call it once.
func (s *Server) Stop() error {
	s.stop()
	return <-s.done
}
