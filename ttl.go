package idem

import "time"

// How long an answer is remembered, measured from the answer. It must exceed
// the longest time over which a client retries.
const (
	// DefaultTTL covers a bug that ships on Friday and is retried on Monday.
	DefaultTTL = 72 * time.Hour
	// Simple is for retries that a client makes by itself.
	Simple = 24 * time.Hour
	// Orders is for orders, payments and bookings, which people come back to.
	Orders = 7 * 24 * time.Hour
)
