package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
)

// demoListen opens the shop's address before anything else is started: it is
// what fails most often.
func demoListen(ctx context.Context, o demoOptions) (*net.TCPListener, error) {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, usagef("--listen is %q; it must be like 127.0.0.1:8000", o.listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, usagef("--listen has the port %q; it must be a number from 0 to 65535", port)
	} else if ip := net.ParseIP(host); ip == nil && host != "localhost" && host != "" {
		return nil, usagef("--listen has the host %q; it must be an IP address or localhost", host)
	}
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", o.listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, exitf(exitFailed, "%s is in use; stop the program that listens there, or choose another address with --listen 127.0.0.1:0", o.listen)
	case errors.Is(err, syscall.EACCES):
		return nil, exitf(exitFailed, "listening on %s is not allowed; choose a port above 1023 with --listen", o.listen)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, exitf(exitFailed, "this machine does not have the address %s; choose another with --listen", o.listen)
	case err != nil:
		return nil, exitf(exitFailed, "cannot listen on %s: %w", o.listen, err)
	}
	return ln.(*net.TCPListener), nil
}

// demoURL is the shop's address for a client on this machine.
func demoURL(ln *net.TCPListener) string {
	addr := ln.Addr().(*net.TCPAddr)
	host := addr.IP.String()
	if addr.IP.IsUnspecified() || addr.IP.Equal(net.IPv4(127, 0, 0, 1)) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(addr.Port))
}
