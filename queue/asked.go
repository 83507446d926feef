package queue

import (
	"errors"
	"fmt"
	"time"
)

// asked are the tasks as they are stored; the error wraps ErrTaskInvalid.
func (k *Kind[T]) asked(many []Task[T]) ([]stored, error) {
	if k.fault != nil {
		return nil, fmt.Errorf("%w: kind %q: %w", ErrTaskInvalid, k.name, k.fault)
	}
	if len(many) > MaxTasks {
		return nil, fmt.Errorf("%w: %d tasks at once; at most %d are allowed", ErrTaskInvalid, len(many), MaxTasks)
	}
	all, total := make([]stored, len(many)), 0
	for i, t := range many {
		s, err := k.stored(t)
		if err != nil {
			return nil, fmt.Errorf("%w: task %d (%s): %w", ErrTaskInvalid, i, shown(t.Key), err)
		}
		if total += len(s.payload); total > MaxTotal {
			return nil, fmt.Errorf("%w: the payloads of %d tasks have more than %d bytes; enqueue them in parts", ErrTaskInvalid, len(many), MaxTotal)
		}
		all[i] = s
	}
	return all, nil
}

// shown is a key as an error shows it.

func shown(key string) string {
	if key == Unkeyed {
		return "unkeyed"
	}
	return fmt.Sprintf("%.64q", key)
}

// stored is a task as it is stored.
type stored struct {
	key                  *string
	payload, fingerprint []byte
	delay                *float64
	runAt                *time.Time
	priority             int16
	maxAttempts          int32
}

// stored checks a task, and reports every fault of it at once.
func (k *Kind[T]) stored(t Task[T]) (s stored, err error) {
	priority, attempts := k.options.Priority, k.options.MaxAttempts
	if t.Priority != nil {
		priority = *t.Priority
	}
	if t.MaxAttempts != nil {
		attempts = *t.MaxAttempts
	}
	var faults []error
	switch {
	case t.Key == "":
		faults = append(faults, errors.New("Task.Key is empty; name the task, or say queue.Unkeyed"))
	case t.Key != Unkeyed:
		s.key = &t.Key
		faults = append(faults, visible("Task.Key", t.Key, MaxKey))
	}
	faults = append(faults, validPriority("Task.Priority", priority), validAttempts("Task.MaxAttempts", attempts), s.due(t.Delay, t.RunAt))
	s.priority, s.maxAttempts = int16(priority), int32(attempts)
	if s.payload, err = encode(t.Payload); err != nil {
		faults = append(faults, err)
	}
	if k.means != nil {
		if s.fingerprint, err = fingerprint(k.means(t.Payload)); err != nil {
			faults = append(faults, err)
		}
	}
	return s, errors.Join(faults...)
}

// due notes when the task is due.
func (s *stored) due(delay time.Duration, at time.Time) error {
	switch {
	case delay != 0 && !at.IsZero():
		return errors.New("Task.Delay and Task.RunAt are set; say one")
	case delay < 0, delay > MaxDelay:
		return fmt.Errorf("Task.Delay is %v; it must be from 0 to %v", delay, MaxDelay)
	case !at.IsZero() && (at.Before(firstDue) || !at.Before(lastDue)):
		return fmt.Errorf("Task.RunAt is %v; it must be from %v to before %v", at, firstDue, lastDue)
	case !at.IsZero():
		s.runAt = &at
	case delay > 0:
		seconds := delay.Seconds()
		s.delay = &seconds
	}
	return nil
}

// The due times that the schema takes.
var (
	firstDue = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	lastDue  = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
)
