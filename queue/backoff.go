package queue

import (
	"math/rand/v2"
	"time"
)

// pause is how long a task waits after its nth attempt has failed: random below a bound
// that doubles with each, so that tasks which fail together do not come back together.
// The bound is clamped before it is doubled, so no n overflows it.
func (o Options) pause(n int) time.Duration {
	bound := min(o.Backoff, o.MaxBackoff)
	for range n - 1 {
		if bound > o.MaxBackoff/2 {
			bound = o.MaxBackoff
			break
		}
		bound *= 2
	}
	return rand.N(bound + 1)
}
