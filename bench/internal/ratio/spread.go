// Package ratio is how a benchmark tells what it has found: medians and their reach, and
// goals that they meet or miss.
package ratio

import (
	"fmt"
	"slices"
)

// Spread is the median of some values and how far they reach.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Of is the zero Spread if there are no values.
func Of(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Spread{median, sorted[0], sorted[len(sorted)-1]}
}

// Text is the median and, in brackets, the reach.
func (s Spread) Text(digits int) string {
	return fmt.Sprintf("%.*f [%.*f-%.*f]", digits, s.Median, digits, s.Min, digits, s.Max)
}
