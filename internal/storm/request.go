package storm

import "time"

// request is one send of an intent as a client process is told to make it: a
// line of JSON on its stdin.
type request struct {
	ID        int    `json:"id"` // of the process; its answer has the same
	Path      string `json:"path"`
	Key       string `json:"key"` // as the header has it
	Principal string `json:"principal"`
	Body      string `json:"body"`
	HangUp    bool   `json:"hang_up"`
	// Patience is how long it is sent again, if not as long as the process's orders say.
	Patience time.Duration `json:"patience,omitempty"`
}

// answer is what a client was told in the end: a line of JSON on the process's
// stdout.
type answer struct {
	ID       int    `json:"id"`
	Status   int    `json:"status"` // 0: no answer at all
	Location string `json:"location"`
	Body     string `json:"body"`
	Code     string `json:"code"` // of a problem
	Replayed bool   `json:"replayed"`
	Definite bool   `json:"definite"` // not "ask again later"
}

// same reports whether two answers are the same for a client: status, body,
// byte for byte, and Location.
func (a answer) same(b answer) bool {
	return a.Status == b.Status && a.Body == b.Body && a.Location == b.Location
}
