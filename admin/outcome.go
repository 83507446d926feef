package admin

// Outcome is what became of what a request wrote to the database, and of its effects.
type Outcome string

// The outcomes. The third is never told as one of the others.
const (
	OutcomeCommitted  Outcome = "committed"   // it was committed
	OutcomeNotApplied Outcome = "not-applied" // nothing was done; only the answer was stored
	OutcomeUnknown    Outcome = "unknown"     // nobody wrote down which, or it is not over
)

// outcomeOf reads the column committed.
func outcomeOf(committed *bool) Outcome {
	switch {
	case committed == nil:
		return OutcomeUnknown
	case *committed:
		return OutcomeCommitted
	default:
		return OutcomeNotApplied
	}
}
