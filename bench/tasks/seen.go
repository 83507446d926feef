package main

import (
	"sync"
	"time"
)

// seen is what the handlers of a process have counted.
type seen struct {
	mu      sync.Mutex
	n       int
	waits   []float64 // from enqueueing to the handler's start, in ms
	target  int
	reached chan struct{}
}

// add counts one handler, which was started at start (Unix ns).
func (s *seen) add(t task, start int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if t.At > 0 {
		s.waits = append(s.waits, float64(start-t.At)/1e6)
	}
	if s.reached != nil && s.n >= s.target {
		close(s.reached)
		s.reached = nil
	}
}

// await returns once n handlers were run, or after limit.
func (s *seen) await(n int, limit time.Duration) {
	s.mu.Lock()
	if s.n >= n {
		s.mu.Unlock()
		return
	}
	reached := make(chan struct{})
	s.target, s.reached = n, reached
	s.mu.Unlock()
	select {
	case <-reached:
	case <-time.After(limit):
	}
}

func (s *seen) count() (n int, waits []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.waits
}
