package queue_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ordersVariable tells a worker process what to do, as JSON of orders.
const ordersVariable = "IDEM_TEST_QUEUE_ORDERS"

// orders are those of a worker process.
type orders struct {
	URL         string
	Concurrency int
	Lease       time.Duration
	Timeout     time.Duration
	Leased      bool
	Attempts    int // 0: three
	Connections int // 0: one for each handler, and some
}

// kind is the kind that worker processes and their tests share.
func (o orders) kind() *queue.Kind[job] {
	return queue.Define[job]("job", queue.Options{Lease: o.Lease, Timeout: o.Timeout, MaxAttempts: cmp.Or(o.Attempts, 3), Backoff: time.Millisecond})
}

var workerProcess = register("worker", workAsChild)

// register makes a function what a process does, and returns its name.
func register(name string, do func() int) string {
	children[name] = do
	return name
}

// workAsChild is a worker until its parent closes its stdin. It writes each event of a
// task, and what handlers say, as a line.
func workAsChild() int {
	var o orders
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err := json.Unmarshal([]byte(os.Getenv(ordersVariable)), &o)
	if err != nil {
		return ended(err)
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return ended(err)
	}
	config.MaxConns = int32(cmp.Or(o.Connections, o.Concurrency+4))
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return ended(err)
	}
	defer pool.Close()
	db, err := idem.Open(ctx, pool, idem.Config{Observe: func(_ context.Context, e idem.Event) {
		if e.Kind == idem.EventTask {
			fmt.Printf("ended %s %d\n", e.TaskResult, e.TaskID)
		}
	}})
	if err != nil {
		return ended(err)
	}
	w := queue.NewWorker(db, queue.Config{Concurrency: o.Concurrency, Poll: 100 * time.Millisecond, Grace: -1})
	if o.Leased {
		o.kind().HandleLeased(w, func(ctx context.Context, j job) error { return act(ctx, idem.Tx(ctx), j) })
	} else {
		o.kind().Handle(w, act)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return ended(w.Run(ctx))
}

func ended(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the process of a test:", err)
		return 1
	}
	return 0
}

// act is what a handler does in a process of its own.
func act(ctx context.Context, tx pgx.Tx, j job) error {
	write := func() error {
		_, err := tx.Exec(ctx, "insert into runs (n, by) values ($1, 'process')", j.N)
		return err
	}
	switch j.Do {
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "work":
		time.Sleep(time.Millisecond)
	case "effect":
		fmt.Println("runs", j.N)
		time.Sleep(20 * time.Millisecond)
		_, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: "test", Key: fmt.Sprint("job:", j.N)}, func(context.Context, pgx.Tx) (int, error) {
			return j.N, write()
		})
		return err
	case "hang": // before it writes
		fmt.Println("runs", j.N)
		<-ctx.Done()
		fmt.Println("cause", context.Cause(ctx))
		return errors.New("hung")
	case "freeze": // when it has written, and whatever its context says, it goes on
		if err := write(); err != nil {
			return err
		}
		fmt.Println("runs", j.N)
		<-ctx.Done()
		fmt.Println("cause", context.Cause(ctx))
		return nil
	}
	return write()
}

// process is a worker in a process of its own.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{}

	mu    sync.Mutex
	lines []string
}

// startProcess starts a worker. It is killed when the test ends.
func startProcess(t testing.TB, o orders, env ...string) *process {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0]), gone: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), childVariable+"="+workerProcess, ordersVariable+"="+string(text)), env...)
	var said bytes.Buffer
	p.cmd.Stderr = &said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, in.Text())
			p.mu.Unlock()
		}
		_ = p.cmd.Wait() // tests look at what it has done
	}()
	t.Cleanup(func() {
		p.kill()
		if said.Len() > 0 {
			t.Logf("a process said: %s", said.String())
		}
	})
	return p
}

// says counts the lines that begin so.
func (p *process) says(begin string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // also if it is frozen
	<-p.gone
}

// stop lets the process end by itself.
func (p *process) stop() {
	p.t.Helper()
	_ = p.stdin.Close()
	select {
	case <-p.gone:
	case <-time.After(30 * time.Second):
		p.t.Fatal("the process does not end")
	}
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("the process ended with %v", p.cmd.ProcessState)
	}
}
