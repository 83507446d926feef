package idemhttp

import (
	"errors"
	"sync/atomic"
)

// budget bounds the bytes that a guard holds at one time, so that overload is
// an answer and not the end of the process.
type budget struct {
	limit int64
	used  atomic.Int64
}

var errBudget = errors.New("idemhttp: the buffers of all requests have reached Config.MaxBuffers")

func newBudget(limit int64) *budget { return &budget{limit: limit} }

// reserve takes n bytes, or none and returns errBudget.
func (b *budget) reserve(n int64) error {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return errBudget
	}
	return nil
}

// hold is a share of a budget that several requests may use: the last one gives
// it back.
type hold struct {
	budget *budget
	bytes  int64
	users  atomic.Int32
}

// hold takes n bytes for one user.
func (b *budget) hold(n int) (*hold, error) {
	if err := b.reserve(counted(n)); err != nil {
		return nil, err
	}
	h := &hold{budget: b, bytes: counted(n)}
	h.users.Store(1)
	return h, nil
}

func (h *hold) share(users int) {
	if h != nil {
		h.users.Add(int32(users))
	}
}

func (h *hold) release() {
	if h != nil && h.users.Add(-1) == 0 {
		h.budget.used.Add(-h.bytes)
	}
}

// exempt is the size up to which a buffer is not counted, so that large bodies
// which arrive slowly, or never, cannot keep small ones out. What is exempt is
// bounded by the connections that the program accepts.
const exempt = 4 << 10

func counted(size int) int64 { return int64(max(size-exempt, 0)) }

// buffer is bytes held within a budget, up to a limit. It is not safe for
// concurrent use.
type buffer struct {
	budget *budget
	limit  int
	bytes  []byte
}

// smallest is the first capacity of a buffer: most bodies fit.
const smallest = 512

// grow makes room for n more bytes, at most doubling what is held and never
// beyond the limit, which the caller keeps.
func (b *buffer) grow(n int) error {
	need := len(b.bytes) + n
	if need <= cap(b.bytes) {
		return nil
	}
	size := max(need, min(max(2*cap(b.bytes), smallest), b.limit))
	// Only what is added counts: the smaller buffer is let go of at once.
	if err := b.budget.reserve(counted(size) - counted(cap(b.bytes))); err != nil {
		return err
	}
	grown := make([]byte, len(b.bytes), size)
	copy(grown, b.bytes)
	b.bytes = grown
	return nil
}

func (b *buffer) release() {
	b.budget.used.Add(-counted(cap(b.bytes)))
	b.bytes = nil
}

// hold turns the buffer's share of the budget into one that can be shared.
func (b *buffer) hold() *hold {
	h := &hold{budget: b.budget, bytes: counted(cap(b.bytes))}
	h.users.Store(1)
	b.bytes = nil
	return h
}
