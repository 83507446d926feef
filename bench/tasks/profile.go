package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// profileAll works tasks off once more, for every subject, and writes for each where the
// CPU time of its process (NAME.pprof, if that is in Go) and its WAL (NAME.wal) go. It is
// apart from the repetitions, since a profile costs time itself.
func (b *bench) profileAll(ctx context.Context, dir string, progress io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = b.postgres.ExplainWAL(ctx)
	}
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	for _, s := range b.subjects {
		for _, phase := range []string{noop, insert} {
			if !s.takesPart(phase) {
				continue
			}
			name := filepath.Join(dir, strings.NewReplacer(", ", "-", " ", "-").Replace(s.name+", "+phase))
			fmt.Fprintf(progress, "profiling: %s\n", name)
			if err := b.profiled(ctx, s, phase, name); err != nil {
				return fmt.Errorf("profile %s: %w", s.name, err)
			}
		}
	}
	return nil
}

func (b *bench) profiled(ctx context.Context, s subject, phase, name string) error {
	if err := b.empty(ctx); err != nil {
		return err
	}
	_, worker, err := b.piled(ctx, s, phase)
	if err != nil {
		return err
	}
	defer worker.end()
	if !s.node {
		if _, err := worker.tell(order{Do: doProfile, File: name + ".pprof"}); err != nil {
			return err
		}
	}
	from, err := b.postgres.Flushed(ctx)
	if err != nil {
		return err
	}
	f, err := b.timed(ctx, s, worker)
	if err != nil {
		return err
	}
	to, err := b.postgres.Flushed(ctx)
	if err != nil {
		return err
	}
	closing := slices.DeleteFunc([]order{{Do: doProfiled}, {Do: doStop}}, func(o order) bool { return s.node && o.Do == doProfiled })
	for _, o := range closing {
		if _, err := worker.tell(o); err != nil {
			return err
		}
	}
	return b.postgres.WriteWAL(ctx, name+".wal", from, to, "task", float64(f.Tasks))
}
