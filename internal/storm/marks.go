package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// marks keep the rows of one storm apart from those of every other on the same
// database: customers, slots and keys that nobody else uses. They come from
// chance, not from the seed, so that a seed can be repeated.
type marks struct {
	firstCustomer int64
	firstSlot     time.Time
	key           string // how every key begins
}

// freshMarks draws marks and makes sure that the database has no row of theirs.
func freshMarks(ctx context.Context, cfg Config) (marks, error) {
	// Blocks of MaxIntents customers, below the 2^53 that the shop allows.
	block := 1 + rand.Int64N(1<<32)
	m := marks{
		firstCustomer: block * MaxIntents,
		firstSlot:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rand.Int64N(50*365*24*60)) * time.Minute),
		key:           fmt.Sprintf("storm-%016x", rand.Uint64()),
	}
	var found Report
	found.Guarded.Intents, found.Bookings.Slots = cfg.Intents, slotCount(cfg.Intents)
	if err := count(ctx, cfg.DB.Pool(), m, &found); err != nil {
		return m, err
	}
	if found.Guarded.Database.Rows+found.Unguarded.Database.Rows+found.Bookings.Database.Rows > 0 {
		return m, errors.New("storm: the customers drawn for this storm have orders already; run it again")
	}
	return m, nil
}

func (m marks) customers(n int) (first, last int64) {
	return m.firstCustomer, m.firstCustomer + int64(n) - 1
}

func (m marks) slots(n int) (first, last time.Time) {
	return m.firstSlot, m.firstSlot.Add(time.Duration(n-1) * time.Minute)
}

func (m marks) slot(i int) string {
	return m.firstSlot.Add(time.Duration(i) * time.Minute).Format("2006-01-02T15:04")
}
