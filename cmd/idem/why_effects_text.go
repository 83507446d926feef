package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
)

// effectName names an effect by key and scope.
func effectName(e admin.Effect) string { return printable(e.Key) + " of " + printable(e.Scope) }

// effectsThatMayBe are the effects that are not known to be absent.
func effectsThatMayBe(s admin.Story) []admin.Effect {
	var found []admin.Effect
	for _, e := range s.Effects {
		if e.Status != admin.StatusAbsent {
			found = append(found, e)
		}
	}
	return found
}

// unsettled is the effect of a story that decides its verdict: an unknown one first,
// then one that was left for good, then any whose call has not ended; nil if there is
// none.
func unsettled(effects []admin.Effect) *admin.Effect {
	var found *admin.Effect
	for i, e := range effects {
		if !e.Settled() && (found == nil || doubt(e) > doubt(*found)) {
			found = &effects[i]
		}
	}
	return found
}

// doubt ranks effects that are not settled.
func doubt(e admin.Effect) int {
	switch {
	case e.Status == admin.StatusUnknown:
		return 3
	case e.Owned:
		return 0
	case e.Repeatable():
		return 1
	default:
		return 2
	}
}

// unsettledText says what is known of such an effect, and what to do. tasks are those of
// the story, one of which may have called it.
func unsettledText(e admin.Effect, tasks []admin.Task) string {
	switch {
	case e.Status == admin.StatusStarted && e.Owned:
		return "Not decided: " + effectName(e) + " is being called by " + intentText(e.Owner) + "."
	case e.Repeatable() && e.Owner.Door == "task":
		return "Not decided: " + effectName(e) + " was called, and it is not known what came of that. " + nextAttempt(e, tasks) +
			" calls again with the same downstream key, until " + moment(e.KeyedUntil) + "."
	case e.Repeatable():
		return "Not decided: " + effectName(e) + " was called, and its process is gone. The next retry calls again with the same downstream key, until " + moment(e.KeyedUntil) + "."
	}
	text := "Unknown: nobody knows whether " + effectName(e) + " was applied. Ask the other side by the downstream key, then: "
	if e.Calling {
		text = "Unknown: nobody knows whether " + effectName(e) + " was applied. The last call may be under way until " + moment(e.CallUntil) +
			": ask the other side after that, by the downstream key, then: "
	}
	return text + settleText(e) + andRetry(e, tasks)
}

// settleText is the command that settles an effect by what the other side says of the
// calls so far.
func settleText(e admin.Effect) string {
	return "idem effects settle " + printable(e.Key) + " --scope " + printable(e.Scope) + " --calls " + strconv.Itoa(e.Calls) +
		" --applied --result JSON (or --absent) --reason TEXT --yes"
}

// andRetry is what is to be done behind that, if a task has called the effect that does
// not run again by itself.
func andRetry(e admin.Effect, tasks []admin.Task) string {
	for _, t := range tasks {
		switch {
		case t.Intent() != e.Owner:
		case t.Status == queue.StatusFailed, t.Status == queue.StatusCancelled:
			return fmt.Sprintf("; and then, to go on: idem tasks retry %d --reason TEXT", t.ID)
		case toBeCancelled(t):
			return fmt.Sprintf("; and then, to go on, once the task is cancelled: idem tasks retry %d --reason TEXT", t.ID)
		}
	}
	return ""
}

// nextAttempt names the attempt that goes on with an effect which a task has called.
func nextAttempt(e admin.Effect, tasks []admin.Task) string {
	for _, t := range tasks {
		switch {
		case t.Intent() != e.Owner:
		case t.Status == queue.StatusDone:
			return "The next caller"
		case !t.Finished():
			return goesOn(t)
		default:
			return fmt.Sprintf("The task is %s, so that nobody repeats it by itself: idem tasks retry %d --reason TEXT", t.Status, t.ID)
		}
	}
	return "The next attempt of " + intentText(e.Owner)
}

// appliedText names the effects that are applied; empty if none is.
func appliedText(effects []admin.Effect) string {
	var names []string
	for _, e := range effects {
		if e.Status == admin.StatusApplied {
			names = append(names, effectName(e))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "Applied: " + strings.Join(names, ", ") + "; what it came to is in its result."
}

// writeEffects writes the effects of a story, if there are any, and, where they are not all
// of one intent, whose they are.
func (e env) writeEffects(effects []admin.Effect, several bool, paint func(color, string) string) error {
	if len(effects) == 0 {
		return nil
	}
	rows := storyEffects(effects, paint)
	if several {
		rows[0] = append(rows[0], "CALLED BY")
		for i, effect := range effects {
			rows[i+1] = append(rows[i+1], intentText(caller(effect)))
		}
	}
	return e.writePart("Effects", rows)
}

// caller is what has called an effect last, or, within a transaction, applied it.
func caller(e admin.Effect) admin.Intent {
	if e.Owner.Door == "" {
		return e.Cause
	}
	return e.Owner
}

// storyEffects are the lines of a story's effects.
func storyEffects(effects []admin.Effect, paint func(color, string) string) [][]string {
	rows := [][]string{{"  EFFECT", paint(plain, "STATUS"), "CALLS", "DOWNSTREAM KEY", "STARTED", "UPDATED", "LAST ERROR"}}
	for _, e := range effects {
		rows = append(rows, []string{
			"  " + effectName(e), paint(statusColor(e), effectText(e)), strconv.Itoa(e.Calls), orDash(e.DownstreamKey),
			moment(e.CreatedAt), moment(e.UpdatedAt), orDash(e.LastError),
		})
	}
	return rows
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}
