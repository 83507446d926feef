package queue

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestT16_thePauseIsNeverAboveTheCapAndOverflowsAtNoAttempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Backoff:    time.Duration(rapid.Int64Range(1, int64(MaxDelay)).Draw(t, "backoff")),
			MaxBackoff: time.Duration(rapid.Int64Range(1, int64(MaxDelay)).Draw(t, "max")),
		}
		n := rapid.OneOf(rapid.IntRange(1, MaxAttempts), rapid.IntRange(1, 1<<30)).Draw(t, "attempt")
		if got := o.pause(n); got < 0 || got > o.MaxBackoff {
			t.Fatalf("the pause is %v, want 0 to %v", got, o.MaxBackoff)
		}
	})
}

func TestT16_theBoundDoublesWithEachAttempt(t *testing.T) {
	o := Options{Backoff: time.Second, MaxBackoff: time.Minute}
	for n, bound := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute} {
		longest := time.Duration(0)
		for range 2000 {
			longest = max(longest, o.pause(n))
		}
		if longest > bound || longest < bound*95/100 {
			t.Errorf("attempt %d: the longest of many pauses is %v, want about %v", n, longest, bound)
		}
	}
}
