package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

const (
	// readHeaderTimeout is for a client that opens a connection and says
	// nothing, or a header a byte at a time.
	readHeaderTimeout = 5 * time.Second
	// readTimeout is for a whole request with its body: 64 KiB in 15 s is
	// slower than any phone.
	readTimeout = 15 * time.Second
	// commitLimit is how long the guard may take for COMMIT and reading back.
	commitLimit = 10 * time.Second
	// idleTimeout keeps a connection for a client's next request; longer than
	// most clients keep theirs, so that it is seldom we who close.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes is many times the largest key and token.
	maxHeaderBytes = 32 << 10
	// shutdownLimit lets a running handler reach its own limit before its
	// connection is cut.
	shutdownLimit = idemhttp.DefaultLimit + 5*time.Second
)

// writeTimeout counts from the end of a request's header, so it has to cover
// its body, a wait for the first request, the handler and its commit. A shorter
// one would cut off clients whose order has been made.
func writeTimeout(wait time.Duration) time.Duration {
	return readTimeout + wait + idemhttp.DefaultLimit + commitLimit + 5*time.Second
}

// Run serves the shop on ln, and works on its tasks and sweeps beside it, until ctx
// ends. Then it takes no more requests and tasks, finishes those that run (at most 35 s),
// and returns. It closes ln. The error is nil after a shutdown that ctx asked for, if everything
// was finished in time.
func (s *Shop) Run(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout(s.wait),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	beside, stop := context.WithCancel(ctx)
	defer stop()
	swept, worked := make(chan error, 1), make(chan error, 1)
	go func() { swept <- idem.RunSweeper(beside, s.db) }()
	go func() { worked <- s.Work(beside) }()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("shop: serve: %w", err)
	case <-ctx.Done():
		err = shutDown(server)
		<-served
	}
	stop()
	err = errors.Join(err, <-worked)
	if sweepErr := <-swept; sweepErr != nil && !errors.Is(sweepErr, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("shop: sweep: %w", sweepErr))
	}
	return err
}

// shutDown does not run on the context whose end asked for it.
func shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("shop: requests were cut off: %w", err), server.Close())
	}
	return nil
}
