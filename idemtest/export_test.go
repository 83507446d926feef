package idemtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// KillAt is KillEverywhere at those points only that keep chooses by what they are
// called.
func KillAt(t testing.TB, k Kill, keep func(point string) bool) {
	t.Helper()
	k.everywhere(t, func(r rehearsal) []point {
		return slices.DeleteFunc(cutPoints(r), func(p point) bool { return !keep(fmt.Sprint(p)) })
	}, k.cutAt)
}

// KillProcessAt is KillProcess at those points only that keep chooses.
func KillProcessAt(t testing.TB, k Kill, keep func(point string) bool) {
	t.Helper()
	if os.Getenv(childTest) == t.Name() {
		KillProcess(t, k) // which serves, and does not return
	}
	k.everywhere(t, func(r rehearsal) []point {
		return slices.DeleteFunc(killPoints(r), func(p point) bool { return !keep(fmt.Sprint(p)) })
	}, func(ctx context.Context, want outcome, p point) error {
		return k.killAt(ctx, t.Name(), want, p)
	})
}

// Sample makes KillProcess kill at every nth point only.
func Sample(n int) {
	processPoints = func(r rehearsal) (some []point) {
		for i, p := range killPoints(r) {
			if i%n == 0 {
				some = append(some, p)
			}
		}
		return some
	}
}
