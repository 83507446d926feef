package queue

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// DefaultQueue is the queue of kinds that name none.
	DefaultQueue = "default"
	// MaxName is the longest name of a queue or a kind in bytes.
	MaxName = 128
	// MaxKey is the longest key of a task in bytes.
	MaxKey = 512
	// MaxPayload bounds a payload in bytes, as it is stored.
	MaxPayload = 1 << 20
	// MaxDelay bounds how far in the future a task may be due.
	MaxDelay = 10 * 365 * 24 * time.Hour
	// MinPriority and MaxPriority bound a task's priority; the highest is taken first.
	MinPriority, MaxPriority = -5, 5

	// DefaultLease is how long a worker that falls silent is trusted to live.
	DefaultLease = 30 * time.Second
	// MinLease and MaxLease bound a lease.
	MinLease, MaxLease = time.Second, 24 * time.Hour
	// DefaultTimeout is how long one attempt may take.
	DefaultTimeout = time.Minute
	// MinTimeout and MaxTimeout bound that: PostgreSQL counts its limits in whole
	// milliseconds, of which it takes those of 24 days.
	MinTimeout, MaxTimeout = time.Millisecond, 14 * 24 * time.Hour
	// DefaultMaxAttempts is how often the handler of a task is started at most.
	DefaultMaxAttempts = 10
	// MaxAttempts bounds that.
	MaxAttempts = 1000
	// DefaultBackoff and DefaultMaxBackoff bound the pause before the second attempt, and
	// before any.
	DefaultBackoff, DefaultMaxBackoff = time.Second, time.Hour
	// DefaultRetention is how long a finished task and its key are remembered.
	DefaultRetention = 7 * 24 * time.Hour
	// MaxRetention bounds that.
	MaxRetention = 10 * 365 * 24 * time.Hour
	// Forget is the Options.Retention that keeps nothing: a task that is done is deleted,
	// and its key can be used anew. One on a lease that was taken more than once is deleted
	// by the next Sweep.
	Forget = time.Duration(-1)
)

// Options are what the tasks of a kind share. The zero value works.
type Options struct {
	// Queue is where the tasks wait. Empty means DefaultQueue. At most MaxName bytes of
	// visible ASCII. Programs that handle different kinds should each have a queue of their
	// own: a worker reads past every due task of its queue that it does not handle.
	Queue string
	// Priority is from MinPriority to MaxPriority; the highest is taken first.
	Priority int
	// MaxAttempts is how often the handler is started at most: 1 to MaxAttempts, 0 means
	// DefaultMaxAttempts. A task that has used them up is failed, a dead letter.
	MaxAttempts int
	// Backoff bounds the pause after the first attempt, and doubles after each, up to
	// MaxBackoff: the pause is random below the bound. 0 means DefaultBackoff and
	// DefaultMaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Timeout is how long one attempt may take, MinTimeout to MaxTimeout; then its context
	// ends, and what it has written is rolled back. 0 means DefaultTimeout.
	Timeout time.Duration
	// Lease is how long a worker that has fallen silent keeps the task, MinLease to
	// MaxLease; a live one renews it three times as often. 0 means DefaultLease.
	Lease time.Duration
	// Retention is for how long a task that is done, and its key with it, is remembered:
	// in whole seconds, up to MaxRetention. 0 means DefaultRetention. A cancelled task is
	// kept for a day and a failed one for 30 days at least. Forget keeps nothing of what
	// is done.
	Retention time.Duration
}

// Kind is a kind of task with a payload of type T, made by Define. It is safe for
// concurrent use once it is made.
type Kind[T any] struct {
	name    string
	options Options
	means   func(T) any
	fault   error
}

// Define names a kind of task, as a variable of the program that enqueues it and of the
// one that handles it. The payload is stored as the JSON of a T, or as it is if T is
// []byte; what JSON would change without a word, such as text that is not UTF-8, cannot be
// enqueued. What is wrong with the name or the options is an ErrTaskInvalid of Enqueue,
// and an ErrWorkerInvalid of the worker's Run.
func Define[T any](name string, o Options) *Kind[T] {
	k := &Kind[T]{name: name, options: o.withDefaults()}
	k.fault = errors.Join(validName("the kind", name), k.options.valid(), encodable[T]())
	return k
}

// Means declares what makes two payloads of one key the same task: the JSON of what fn
// returns, which must be the same in every version of the program. Without it the whole
// payload is: give fields that a later version adds `omitempty`, then. It is called where
// the kind is defined, and returns k.
func (k *Kind[T]) Means(fn func(T) any) *Kind[T] {
	k.means = fn
	return k
}

// Name is the kind's name.
func (k *Kind[T]) Name() string { return k.name }

// Queue is the queue of the kind's tasks.
func (k *Kind[T]) Queue() string { return k.options.Queue }

func (o Options) withDefaults() Options {
	o.Queue = cmp.Or(o.Queue, DefaultQueue)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, DefaultMaxAttempts)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, max(DefaultMaxBackoff, o.Backoff))
	o.Backoff = cmp.Or(o.Backoff, min(DefaultBackoff, o.MaxBackoff))
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Retention = cmp.Or(o.Retention, DefaultRetention)
	return o
}

// valid reports every fault of o at once.
func (o Options) valid() error {
	faults := []error{validName("Options.Queue", o.Queue), validPriority("Options.Priority", o.Priority), validAttempts("Options.MaxAttempts", o.MaxAttempts)}
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(o.Backoff <= 0 || o.MaxBackoff < o.Backoff, "Options.Backoff is %v and Options.MaxBackoff %v; they must be positive, the second not below the first", o.Backoff, o.MaxBackoff)
	fault(o.MaxBackoff > MaxDelay, "Options.MaxBackoff is %v; at most %v are allowed", o.MaxBackoff, MaxDelay)
	fault(o.Timeout < MinTimeout || o.Timeout > MaxTimeout, "Options.Timeout is %v; it must be from %v to %v, or 0 for %v", o.Timeout, MinTimeout, MaxTimeout, DefaultTimeout)
	fault(o.Lease < MinLease || o.Lease > MaxLease, "Options.Lease is %v; it must be from %v to %v, or 0 for %v", o.Lease, MinLease, MaxLease, DefaultLease)
	fault(o.Retention != Forget && (o.Retention < time.Second || o.Retention > MaxRetention),
		"Options.Retention is %v; it must be from 1s to %v, 0 for %v, or queue.Forget", o.Retention, MaxRetention, DefaultRetention)
	return errors.Join(faults...)
}

// retention is for how many seconds a task that is done is kept.
func (o Options) retention() int {
	if o.Retention == Forget {
		return 0
	}
	return int(math.Ceil(o.Retention.Seconds()))
}

func validName(what, name string) error { return visible(what, name, MaxName) }

// visible reports a name that is not 1 to most bytes of visible ASCII.
func visible(what, name string, most int) error {
	if name == "" || len(name) > most {
		return fmt.Errorf("%s has %d bytes; it must have 1 to %d", what, len(name), most)
	}
	for i := range len(name) {
		if name[i] < 0x21 || name[i] > 0x7e {
			return fmt.Errorf("%s: byte %d is not visible ASCII; use words and ids, such as receipt:1", what, i+1)
		}
	}
	return nil
}

func validPriority(what string, p int) error {
	if p < MinPriority || p > MaxPriority {
		return fmt.Errorf("%s is %d; it must be from %d to %d", what, p, MinPriority, MaxPriority)
	}
	return nil
}

func validAttempts(what string, n int) error {
	if n < 1 || n > MaxAttempts {
		return fmt.Errorf("%s is %d; it must be from 1 to %d", what, n, MaxAttempts)
	}
	return nil
}
