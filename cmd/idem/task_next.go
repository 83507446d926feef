package main

import (
	"fmt"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
)

// nextStatus is the status that a running task is about to get by somebody else than its
// handler; empty if only its handler decides.
func nextStatus(s admin.TaskStory) queue.Status {
	switch t := s.Task; {
	case t.Status != queue.StatusRunning:
		return ""
	case !t.Live:
		return s.Rescued()
	case toBeCancelled(t):
		return queue.StatusCancelled
	}
	return ""
}

// toBeCancelled reports whether the cancellation of a running task was asked for: unless
// its handler finishes it all the same, it does not run again.
func toBeCancelled(t admin.Task) bool {
	return t.Status == queue.StatusRunning && !t.CancelAt.IsZero()
}

// rescueText says what the next worker does with a running task whose lease is over.
func rescueText(s admin.TaskStory) string {
	const who = "the next worker of its queue that looks "
	switch s.Rescued() {
	case queue.StatusCancelled:
		return who + "cancels it, as was asked for"
	case queue.StatusFailed:
		return who + "makes it a dead letter: that was its last attempt"
	}
	if s.Task.Paused {
		return who + "makes it pending again; " + pausedText(s.Task)
	}
	return who + "makes it pending again, for one that handles " + printable(s.Task.Kind)
}

// waitsFor names what has to happen before a pending task is taken.
func waitsFor(t admin.Task) string {
	text := workerOf(t)
	if !t.Due {
		text = "its time, and " + text
	}
	if t.Paused {
		text = "idem tasks resume " + printable(t.Queue) + " --reason TEXT, then " + text
	}
	return text
}

// workerOf names who takes a task: nothing in the database says whether there is one.
func workerOf(t admin.Task) string {
	return "a worker of its queue that handles " + printable(t.Kind)
}

// pausedText says what a task waits for whose queue is paused.
func pausedText(t admin.Task) string {
	return "its queue is paused, so nothing takes it before idem tasks resume " + printable(t.Queue) + " --reason TEXT"
}

// unfinishedText says that a task is not finished, as the reason against another key.
func unfinishedText(t admin.Task) string {
	switch {
	case toBeCancelled(t):
		return taskName(t) + ", which it has caused, is not cancelled yet"
	case t.Status == queue.StatusRunning:
		return taskName(t) + ", which it has caused, is not finished"
	}
	return taskName(t) + ", which it has caused, will still run"
}

// goesOn names what goes on with an effect that a task has called which is not finished.
func goesOn(t admin.Task) string {
	text := "The next attempt of " + intentText(t.Intent())
	switch {
	case toBeCancelled(t):
		return fmt.Sprintf("The task is to be cancelled, so that nobody repeats it by itself: once it is, idem tasks retry %d --reason TEXT", t.ID)
	case t.Status == queue.StatusRunning && !t.Live && t.Attempts+1 >= t.MaxAttempts:
		text += fmt.Sprintf(", or, if this was its last, idem tasks retry %d --reason TEXT", t.ID)
	}
	if t.Paused {
		text += ", once its queue is resumed,"
	}
	return text
}
