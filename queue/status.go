package queue

// Status is where a task stands. The set is closed; docs/states.md draws it.
type Status string

// The states of a task.
const (
	StatusPending   Status = "pending"   // to be taken when it is due
	StatusRunning   Status = "running"   // a worker has it, on a lease
	StatusDone      Status = "done"      // its handler has ended, and what it did is committed
	StatusFailed    Status = "failed"    // a dead letter: its attempts are used up, or its handler gave it up
	StatusCancelled Status = "cancelled" // by its handler, or by hand
)
