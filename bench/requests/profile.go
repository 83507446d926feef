package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// profileAll measures fresh keys once more, for every subject but fiber's, and
// writes for each where its server's CPU time (NAME.pprof) and its WAL (NAME.wal)
// go. It is apart from the repetitions, since a profile costs time itself.
func (b *bench) profileAll(ctx context.Context, dir string, progress io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = b.database.ExplainWAL(ctx)
	}
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	for _, s := range b.servers {
		if s.name == again || strings.HasPrefix(s.name, "fiber") {
			continue
		}
		name := filepath.Join(dir, strings.ReplaceAll(s.name, ", ", "-"))
		fmt.Fprintf(progress, "profiling: %s.pprof and .wal\n", name)
		if err := b.profile(ctx, s, name); err != nil {
			return fmt.Errorf("profile %s: %w", s.name, err)
		}
	}
	return nil
}

func (b *bench) profile(ctx context.Context, s *server, name string) error {
	if answered, err := s.tell("profile " + name + ".pprof"); err != nil || answered != "ok" {
		return errors.Join(err, errors.New(answered))
	}
	from, err := b.database.Flushed(ctx)
	if err != nil {
		return err
	}
	f, err := b.measure(ctx, s, fresh)
	if err != nil {
		return err
	}
	if answered, err := s.tell("profiled"); err != nil || answered != "ok" {
		return errors.Join(err, errors.New(answered))
	}
	to, err := b.database.Flushed(ctx)
	if err != nil {
		return err
	}
	return b.database.WriteWAL(ctx, name+".wal", from, to, "request", float64(f.Requests))
}
