package main

import (
	"encoding/hex"
	"time"

	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

func newKeysCommand(e env) *cobra.Command {
	cmd := newGroup(&cobra.Command{
		Use:   "keys",
		Short: "What is remembered of requests: list, show, release",
		Example: `  idem keys list --scope alice --state answered
  idem keys show 4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77
  idem keys release order-17 --scope alice --reason 'slot was freed' --yes`,
	})
	addDatabaseFlags(cmd.PersistentFlags())
	cmd.AddCommand(newKeysListCommand(e), newKeysShowCommand(e), newKeysReleaseCommand(e))
	return cmd
}

// keyJSON is one key as JSON shows it, in the words of the table's columns.
type keyJSON struct {
	Scope              string     `json:"scope"`
	Key                string     `json:"key"`
	State              string     `json:"state"`
	Expired            bool       `json:"expired"`
	Committed          *bool      `json:"committed"`
	ResponseStatus     int        `json:"response_status,omitempty"`
	HeaderNames        []string   `json:"response_header_names,omitempty"`
	BodyBytes          int64      `json:"response_body_bytes"`
	Reference          string     `json:"reference,omitempty"`
	Fingerprint        string     `json:"fingerprint"`
	FingerprintVersion int        `json:"fingerprint_version"`
	CreatedAt          time.Time  `json:"created_at"`
	ExpiresAt          *time.Time `json:"expires_at"`
	TombstoneUntil     *time.Time `json:"tombstone_until,omitempty"`
	LeaseUntil         *time.Time `json:"lease_until,omitempty"`
	Bound              bool       `json:"bound,omitempty"`
	Fence              string     `json:"fence,omitempty"`
	RequestID          string     `json:"request_id,omitempty"`
	Traceparent        string     `json:"traceparent,omitempty"`
	Body               *string    `json:"response_body,omitempty"`
	BodyBase64         []byte     `json:"response_body_base64,omitempty"`
}

func newKeyJSON(k admin.Key) keyJSON {
	out := keyJSON{
		Scope: k.Scope, Key: k.Key, State: string(k.State), Expired: k.Expired, Committed: committed(k.Outcome),
		ResponseStatus: k.Status, HeaderNames: headerNames(k), BodyBytes: k.BodyBytes, Reference: k.Reference,
		Fingerprint: hex.EncodeToString(k.Fingerprint), FingerprintVersion: k.FingerprintVersion,
		CreatedAt: k.CreatedAt.UTC(), ExpiresAt: whenever(k.ExpiresAt), TombstoneUntil: whenever(k.TombstoneUntil),
		RequestID: k.RequestID, Traceparent: k.Traceparent,
	}
	if k.State == admin.StateClaimed {
		out.LeaseUntil, out.Bound, out.Fence = whenever(k.LeaseUntil), k.Bound, k.Fence
	}
	return out
}

// committed is an outcome as the table's column has it: null is not known.
func committed(o admin.Outcome) *bool {
	if o == admin.OutcomeUnknown {
		return nil
	}
	yes := o == admin.OutcomeCommitted
	return &yes
}

// whenever is t in UTC, or nil for never.
func whenever(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func headerNames(k admin.Key) []string {
	names := make([]string, len(k.Header))
	for i, field := range k.Header {
		names[i] = field.Name
	}
	return names
}

// stateColor tells at a glance what an operator should look at.
func stateColor(k admin.Key) color {
	switch {
	case k.State == admin.StateUnknown:
		return red
	case k.State == admin.StateWithheld, k.State == admin.StateClaimed && !k.Live, k.Expired:
		return yellow
	case k.State == admin.StateAnswered:
		return green
	default:
		return plain
	}
}

// stateText is the state, and whether its time is over.
func stateText(k admin.Key) string {
	switch {
	case k.State == admin.StateClaimed && k.Live:
		return "claimed, in flight"
	case k.State == admin.StateClaimed && !k.Over:
		return "claimed, abandoned"
	case k.Expired:
		return string(k.State) + ", expired"
	}
	return string(k.State)
}
