package main

import (
	"encoding/json"
	"time"

	"github.com/idem-go/idem/admin"
)

// storyJSON is one story as JSON shows it.
type storyJSON struct {
	Scope      string       `json:"scope"`
	Key        string       `json:"key"`
	Outcome    string       `json:"outcome"`
	Retry      string       `json:"retry"`
	SafeNewKey bool         `json:"safe_new_key"`
	Remembered *keyJSON     `json:"remembered"`
	InFlight   *ownerJSON   `json:"in_flight"`
	Tasks      []taskJSON   `json:"tasks"`
	Effects    []effectJSON `json:"effects"`
	Audit      []changeJSON `json:"audit"`
}

// ownerJSON is who works on a key: a database session, or a process on a lease that
// holds none.
type ownerJSON struct {
	PID         int        `json:"pid"`
	LeaseUntil  *time.Time `json:"lease_until,omitempty"`
	Application string     `json:"application_name,omitempty"`
	Address     string     `json:"client_addr,omitempty"`
	Activity    string     `json:"activity,omitempty"`
	Since       *time.Time `json:"since"`
	Seconds     float64    `json:"seconds"`
}

// changeJSON is one line of the audit, in the words of the table's columns.
type changeJSON struct {
	ID     int64           `json:"id"`
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"`
	Action string          `json:"action"`
	Scope  string          `json:"scope"`
	Key    string          `json:"key"`
	Reason string          `json:"reason"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

func newStoryJSON(s admin.Story) storyJSON {
	out := storyJSON{
		Scope: s.Scope, Key: s.Key, Outcome: string(s.Outcome), Retry: string(s.Retry), SafeNewKey: s.NewKey,
		Tasks: tasksJSON(s.Tasks), Effects: effectsJSON(s.Effects), Audit: changesJSON(s.Audit),
	}
	if s.Remembered != nil {
		k := newKeyJSON(*s.Remembered)
		out.Remembered = &k
	}
	if s.Retry == admin.RetryWaits {
		out.InFlight = newOwnerJSON(s)
	}
	return out
}

func newOwnerJSON(s admin.Story) *ownerJSON {
	var out ownerJSON
	if o := s.Owner; o != nil {
		out = ownerJSON{
			PID: o.PID, Application: o.Application, Address: o.Address, Activity: o.Activity,
			Since: whenever(o.Since), Seconds: o.For.Seconds(),
		}
	}
	if s.Remembered != nil {
		out.LeaseUntil = whenever(s.Remembered.LeaseUntil)
	}
	return &out
}

func changesJSON(changes []admin.Change) []changeJSON {
	list := make([]changeJSON, len(changes))
	for i, change := range changes {
		list[i] = newChangeJSON(change)
	}
	return list
}

func newChangeJSON(c admin.Change) changeJSON {
	return changeJSON{
		ID: c.ID, At: c.At.UTC(), Actor: c.Actor, Action: c.Action,
		Scope: c.Scope, Key: c.Key, Reason: c.Reason, Detail: c.Detail,
	}
}
