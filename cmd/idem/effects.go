package main

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

func newEffectsCommand(e env) *cobra.Command {
	cmd := newGroup(&cobra.Command{
		Use:   "effects",
		Short: "What must happen once, and what came of it: list, show, settle",
		Example: `  idem effects list --status unknown
  idem effects show charge:payment:17
  idem effects settle charge:payment:17 --scope shop --calls 1 --absent --reason 'no such charge by 03:40, ticket 4711' --yes`,
	})
	addDatabaseFlags(cmd.PersistentFlags())
	cmd.AddCommand(newEffectsListCommand(e), newEffectsShowCommand(e), newEffectsSettleCommand(e))
	return cmd
}

// effectJSON is one effect as JSON shows it, in the words of the table's columns.
type effectJSON struct {
	Scope         string          `json:"scope"`
	Key           string          `json:"effect_key"`
	Status        string          `json:"status"`
	InFlight      bool            `json:"in_flight"`
	DownstreamKey string          `json:"downstream_key,omitempty"`
	Calls         int             `json:"calls"`
	LastError     string          `json:"last_error,omitempty"`
	Input         string          `json:"input,omitempty"`
	ResultBytes   int64           `json:"result_bytes"`
	Cause         *intentJSON     `json:"cause"`
	Owner         *intentJSON     `json:"owner"`
	CreatedAt     time.Time       `json:"created_at"`
	UpdatedAt     time.Time       `json:"updated_at"`
	IntendedAt    *time.Time      `json:"intended_at,omitempty"`
	CallUntil     *time.Time      `json:"call_until,omitempty"`
	KeyedUntil    *time.Time      `json:"keyed_until,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"`
}

// intentJSON is what causes an effect.
type intentJSON struct {
	Door  string `json:"door"`
	Scope string `json:"scope"`
	Key   string `json:"key"`
}

func newEffectJSON(e admin.Effect) effectJSON {
	return effectJSON{
		Scope: e.Scope, Key: e.Key, Status: string(e.Status), InFlight: e.Status == admin.StatusStarted && e.Owned,
		DownstreamKey: e.DownstreamKey, Calls: e.Calls, LastError: e.LastError,
		Input: hex.EncodeToString(e.Input), ResultBytes: e.ResultBytes,
		Cause: newIntentJSON(e.Cause), Owner: newIntentJSON(e.Owner),
		CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(), IntendedAt: whenever(e.IntendedAt),
		CallUntil: whenever(e.CallUntil), KeyedUntil: whenever(e.KeyedUntil),
	}
}

func newIntentJSON(i admin.Intent) *intentJSON {
	if i == (admin.Intent{}) {
		return nil
	}
	out := intentJSON(i)
	return &out
}

// intentText names what causes an effect, for people.
func intentText(i admin.Intent) string {
	switch i.Door {
	case "":
		return "nothing that was written down"
	case "request":
		return printable(i.Key) + " of " + printable(i.Scope)
	default:
		return printable(i.Door) + " " + printable(i.Key) + " of " + printable(i.Scope)
	}
}

// statusColor tells at a glance what an operator should look at.
func statusColor(e admin.Effect) color {
	switch {
	case e.Status == admin.StatusUnknown:
		return red
	case e.Status == admin.StatusStarted:
		return yellow
	case e.Status == admin.StatusApplied:
		return green
	default:
		return plain
	}
}

// effectText is the status, and what it means for a call that has not ended.
func effectText(e admin.Effect) string {
	switch {
	case e.Status != admin.StatusStarted:
		return string(e.Status)
	case e.Owned:
		return "started, in flight"
	case e.Repeatable():
		return "started, left to the next retry"
	default:
		return "started, left for good"
	}
}
