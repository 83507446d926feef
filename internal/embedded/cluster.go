//go:build unix

package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// initCluster makes a cluster with a random password.
func initCluster(ctx context.Context, bin binaries, data *dataDir, run *runDir, who *account) error {
	secret := filepath.Join(run.path, "password")
	if err := writeOwned(secret, rand.Text()+"\n", who); err != nil {
		return err
	}
	log, err := run.newLog("initdb.log")
	if err != nil {
		return err
	}
	defer log.Close()
	// A crash in the next seconds loses nothing worth a sync. The C locale
	// sorts the same on every machine.
	p, err := supervise(who, log, stopInitdb(), run.removable(data), filepath.Join(bin.dir, "initdb"), "--pgdata="+data.path,
		"--username="+superuser, "--auth=scram-sha-256", "--pwfile="+secret,
		"--locale=C", "--encoding=UTF8", "--no-sync", "--no-instructions")
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("embedded: %w", ctx.Err()), p.stop())
	case <-p.done:
	}
	if err := p.orders.Close(); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if p.outcome != nil {
		return fmt.Errorf("embedded: initdb failed in %s: %s", data.path, complaint(log.Name()))
	}
	if err := os.Rename(secret, filepath.Join(data.path, passwordFile)); err == nil {
		return nil
	}
	// A kept data directory may be on another file system.
	content, err := os.ReadFile(secret)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return writeOwned(filepath.Join(data.path, passwordFile), string(content), who)
}

// writeOwned writes a new file that only the account (and root) can read.
func writeOwned(path, content string, who *account) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if err := who.own(path); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// errPortTaken says that somebody else has the port by now.
var errPortTaken = errors.New("embedded: port taken")

// startServer starts the server on a port that is free, and waits until it is ready.
func startServer(ctx context.Context, settings map[string]string, bin binaries, data *dataDir, run *runDir, who *account) (*process, int, error) {
	if err := data.removeStalePid(); err != nil {
		return nil, 0, err
	}
	for range 20 {
		port, err := freePort()
		if err != nil {
			return nil, 0, err
		}
		log, err := run.newLog("server.log")
		if err != nil {
			return nil, 0, err
		}
		p, err := supervise(who, log, stopServer(), run.path, serverCommand(settings, bin, data, port)...)
		if err == nil {
			if err = waitReady(ctx, p, data, port, log.Name()); err == nil {
				return p, port, log.Close()
			}
			err = errors.Join(err, p.stop())
		}
		log.Close()
		if !errors.Is(err, errPortTaken) {
			return nil, 0, err
		}
	}
	return nil, 0, fmt.Errorf("%w: no free port of 127.0.0.1 stayed free long enough", errPortTaken)
}

// serverCommand is the command line of the server. Of a setting given twice
// the last counts, so ours, which decide who can connect, stand last.
func serverCommand(settings map[string]string, bin binaries, data *dataDir, port int) []string {
	command := []string{filepath.Join(bin.dir, "postgres"), "-D", data.path}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		command = append(command, "-c", name+"="+settings[name])
	}
	return append(command,
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port="+strconv.Itoa(port),
		"-c", "unix_socket_directories=",
		"-c", "logging_collector=off",
		"-c", "log_destination=stderr")
}

// freePort returns a port of 127.0.0.1 that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("embedded: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// waitReady waits until the server says that it accepts connections.
func waitReady(ctx context.Context, p *process, data *dataDir, port int, log string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("embedded: PostgreSQL is not ready: %w", ctx.Err())
		case <-p.done:
			return startFailure(data, log)
		case <-tick.C:
			if m, alive := postmasterOf(data.path); alive && m.ready && m.port == port {
				return nil
			}
		}
	}
}

func startFailure(data *dataDir, log string) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	// Two servers that start at once may both bind a port; the second to listen fails.
	for _, taken := range []string{"could not bind", "could not listen on"} {
		if strings.Contains(string(content), taken) {
			return errPortTaken
		}
	}
	return fmt.Errorf("embedded: PostgreSQL does not start in %s: %s", data.path, complaint(log))
}

// complaint returns the line of a log that says best what went wrong.
func complaint(log string) string {
	content, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, mark := range []string{"FATAL:", "PANIC:", "error:", "ERROR:"} {
		for _, line := range lines {
			if _, message, found := strings.Cut(line, mark); found {
				return strings.TrimSpace(message)
			}
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "it said nothing"
}
