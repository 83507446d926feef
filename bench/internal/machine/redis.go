package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNoRedis says that the machine has no redis-server.
var ErrNoRedis = errors.New("no redis-server in PATH")

// redisProgram runs Redis in the directory $0 until its input ends, so also when
// this process dies, and removes the directory.
const redisProgram = `redis-server --dir "$0" "$@" & cat >/dev/null; kill $!; wait $!; rm -rf "$0"`

// Redis is a Redis of our own on a random loopback port, which appends what
// it is told to a file and syncs it every second, as most do.
type Redis struct {
	Addr   string
	Client *redis.Client
	cmd    *exec.Cmd
	in     io.WriteCloser
}

// StartRedis starts it, or returns ErrNoRedis.
func StartRedis(ctx context.Context) (*Redis, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, ErrNoRedis
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	dir, err := os.MkdirTemp("", "idem-bench-redis-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-c", redisProgram, dir, "--bind", "127.0.0.1", "--port", strconv.Itoa(addr.Port),
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is not for it
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Redis{Addr: addr.String(), Client: redis.NewClient(&redis.Options{Addr: addr.String()}), cmd: cmd, in: in}
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Redis) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := s.Client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Memory is the bytes that Redis uses, and keys how many it has.
func (s *Redis) Memory(ctx context.Context) (bytes, keys float64, err error) {
	info, err := s.Client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, 0, err
	}
	used := regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(info)
	if used == nil {
		return 0, 0, errors.New("redis-server does not say what memory it uses")
	}
	if bytes, err = strconv.ParseFloat(used[1], 64); err != nil {
		return 0, 0, err
	}
	n, err := s.Client.DBSize(ctx).Result()
	return bytes, float64(n), err
}

// CPU is the CPU time that it has used.
func (s *Redis) CPU(ctx context.Context) (time.Duration, error) {
	info, err := s.Client.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, used := range regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`).FindAllStringSubmatch(info, -1) {
		seconds, err := strconv.ParseFloat(used[1], 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

// Stop stops it and removes what it has kept.
func (s *Redis) Stop() {
	s.Client.Close()
	s.in.Close()
	_ = s.cmd.Wait() // its exit code is that of a shell that was told to stop
}
