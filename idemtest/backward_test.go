package idemtest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
)

func TestBackward_triesEachOnce(t *testing.T) {
	var got []int
	for i, err := range backward(t.Context(), 50, func(context.Context, int) error { return nil }) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, i)
	}
	slices.Sort(got)
	for i, n := range got {
		if i != n {
			t.Fatalf("tried %v, want 0 to 49, each once", got)
		}
	}
	if len(got) != 50 {
		t.Errorf("tried %d, want 50", len(got))
	}
}

func TestBackward_nothingRunsAfterTheLoop(t *testing.T) {
	var running, tried atomic.Int64
	for range backward(t.Context(), 1000, func(ctx context.Context, i int) error {
		running.Add(1)
		defer running.Add(-1)
		if tried.Add(1) > 1 {
			<-ctx.Done()
		}
		return nil
	}) {
		break
	}
	if n := running.Load(); n != 0 {
		t.Errorf("%d still run, want none", n)
	}
	if n := tried.Load(); n > 2*mostAtOnce {
		t.Errorf("%d were tried after the loop was left, want no new ones", n)
	}
}
