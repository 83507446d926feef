package idemclient

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is what a longer Retry-After counts as. No call lasts as long, so
// it ends the attempts just as well, and cannot overflow.
const maxRetryAfter = 24 * time.Hour

// retryAfter is the wait that an answer asks for, and whether it asks: seconds, or
// a date. A date counts from the answer's own Date, so that it does not matter how
// far the clocks are apart; without one, from now.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if digits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) { // out of range
			return maxRetryAfter, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(until.Sub(now), 0), maxRetryAfter), true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
