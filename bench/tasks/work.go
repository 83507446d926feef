package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/idem-go/idem/bench/internal/machine"
	"github.com/jackc/pgx/v5/pgxpool"
)

// processArgument is the first argument of this program as a subject's process.
const processArgument = "process"

// actor is such a process.
type actor struct {
	place
	pool *pgxpool.Pool
	peer peer
	seen seen
	stop func() error
}

// serve reads its place, then orders, answers each, and ends with in.
func serve(in io.Reader, out io.Writer) error {
	ctx := context.Background()
	lines := bufio.NewScanner(in)
	a, err := newActor(ctx, lines)
	reply := json.NewEncoder(out)
	if err != nil {
		return errors.Join(err, reply.Encode(answer{Error: err.Error()}))
	}
	var took time.Duration
	for {
		if err := reply.Encode(a.answer(took, err)); err != nil || !lines.Scan() {
			return err
		}
		start := time.Now()
		err = a.obey(ctx, lines.Bytes())
		took = time.Since(start)
	}
}

func newActor(ctx context.Context, lines *bufio.Scanner) (*actor, error) {
	a := &actor{}
	if !lines.Scan() {
		return nil, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(lines.Bytes(), &a.place); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == a.Subject })
	if i < 0 || subjects[i].open == nil {
		return nil, fmt.Errorf("no subject %q", a.Subject)
	}
	var err error
	if a.pool, err = machine.OpenPool(ctx, a.Database, a.Pool); err != nil {
		return nil, err
	}
	if err := a.pool.Ping(ctx); err != nil {
		return nil, err
	}
	a.peer, err = subjects[i].open(ctx, a.pool, a.place)
	return a, err
}

// answer tells what the last order came to.
func (a *actor) answer(took time.Duration, err error) answer {
	told := answer{Seconds: took.Seconds(), CPU: machine.OwnCPU().Microseconds()}
	told.Handled, told.Waits = a.seen.count()
	if err != nil {
		told.Error = err.Error()
	}
	return told
}

func (a *actor) obey(ctx context.Context, line []byte) error {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	return a.do(ctx, o)
}

func (a *actor) do(ctx context.Context, o order) (err error) {
	switch o.Do {
	case doMigrate:
		return a.peer.migrate(ctx)
	case doReady:
		return a.pool.Ping(ctx)
	case doSingle:
		return a.single(ctx, o.N)
	case doMany:
		return a.many(ctx, o.N)
	case doPaced:
		return a.paced(ctx, o.N)
	case doWork:
		a.stop, err = a.peer.work(ctx, &handler{place: a.place, pool: a.pool, seen: &a.seen})
		return err
	case doAwait:
		a.seen.await(o.N, time.Duration(o.Limit)*time.Millisecond)
		return nil
	case doStop:
		return a.stop()
	case doProfile:
		file, err := os.Create(o.File)
		if err != nil {
			return err
		}
		return pprof.StartCPUProfile(file) // the file is closed with the process
	case doProfiled:
		pprof.StopCPUProfile()
		return nil
	}
	return fmt.Errorf("unknown order %q", o.Do)
}
