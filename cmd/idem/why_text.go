package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
)

// writeStory writes one story for people: what it is in a sentence, the three
// questions, the facts, the effects, and what was done by hand.
func (e env) writeStory(s admin.Story, paint func(color, string) string) error {
	text := storyHead(s) + "\n\n" +
		"Retry with this key?        " + retryText(s) + "\n" +
		"Use a new key?              " + paint(verdictColor(s.NewKey), newKeyText(s)) + "\n" +
		"What happened to the money? " + paint(outcomeColor(s.Outcome), moneyText(s)) + "\n"
	if err := e.write(text + "\n"); err != nil {
		return err
	}
	if err := e.writeTable(storyFacts(s, paint)); err != nil {
		return err
	}
	if err := e.writeTasks(s.Tasks, paint); err != nil {
		return err
	}
	if err := e.writeEffects(s.Effects, len(s.Tasks) > 0, paint); err != nil {
		return err
	}
	return e.writeAudit(s.Audit)
}

// writeAudit writes what was done by hand, if anything was.
func (e env) writeAudit(changes []admin.Change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := e.write("\nBy hand:\n"); err != nil {
		return err
	}
	return e.writeTable(auditRows(changes))
}

// isClaim reports whether the story's key is claimed on a lease, alive or abandoned.
func isClaim(s admin.Story) bool {
	return s.Remembered != nil && s.Remembered.State == admin.StateClaimed && !s.Remembered.Over
}

// isFree reports whether nothing is remembered of the key, or nothing but a claim
// whose time is over: it never came to an answer.
func isFree(s admin.Story) bool {
	return s.Remembered == nil || s.Remembered.State == admin.StateClaimed && s.Remembered.Over
}

// storyHead says in one sentence where the key is in its life.
func storyHead(s admin.Story) string {
	name := printable(s.Key) + " of " + printable(s.Scope)
	k := s.Remembered
	switch {
	case s.Retry == admin.RetryWaits && isClaim(s):
		return name + " is running now, on a lease."
	case s.Retry == admin.RetryWaits:
		return name + " is running now."
	case k == nil && len(s.Tasks) > 0:
		return "Nothing is remembered of " + name + " any more but its tasks" + andEffects(s) + "."
	case k == nil && len(s.Effects) > 0:
		return "Nothing is remembered of " + name + " any more but its effects."
	case k == nil:
		return "Nothing is remembered of " + name + " any more."
	case k.State == admin.StateClaimed:
		return claimHead(s, name)
	case s.Retry == admin.RetryRuns && k.Status != 0:
		return fmt.Sprintf("%s was answered %d; the time of that answer is over.", name, k.Status)
	case s.Retry == admin.RetryRuns:
		return name + " was answered; the time of the bare key is over, too."
	case s.Retry == admin.RetryReplayed:
		return fmt.Sprintf("%s was answered %d.", name, k.Status)
	case s.Retry == admin.RetryWithheld:
		return fmt.Sprintf("%s was carried out and answered %d; the answer was too large to store.", name, k.Status)
	case s.Retry == admin.RetryExpired && k.Status != 0:
		return fmt.Sprintf("%s was answered %d; the time of that answer is over, and only the bare key is remembered.", name, k.Status)
	case s.Retry == admin.RetryExpired:
		return name + " was answered; the time of that answer is over, and only the bare key is remembered."
	default:
		return "The outcome of " + name + " is not known: its handler ended the transaction itself."
	}
}

// claimHead is storyHead for a claim on a lease that is over.
func claimHead(s admin.Story, name string) string {
	switch {
	case s.Remembered.Over:
		return name + " was abandoned, and the time of its claim is over."
	case s.Retry == admin.RetryGoesOn:
		return name + " was abandoned on its way; the next retry goes on with it."
	case s.Retry == admin.RetryUnknown:
		return name + " was abandoned on its way, and nobody knows whether all its effects were applied."
	default:
		return name + " was abandoned before any effect had started."
	}
}

// retryText says what a repeat of the same request gets now.
func retryText(s admin.Story) string {
	switch s.Retry {
	case admin.RetryWaits:
		return "Yes. It waits for the one that runs, and gets its answer or in-flight."
	case admin.RetryReplayed:
		text := fmt.Sprintf("Yes. It gets the stored %d again; nothing runs. Another request with this key is told key-mismatch.", s.Remembered.Status)
		if s.Outcome == admin.OutcomeNotApplied {
			text += " After idem keys release it runs as new."
		}
		return text
	case admin.RetryGoesOn:
		return "Yes. It takes over and goes on: what is applied is skipped, and what was left is called again with the same downstream key."
	case admin.RetryUnknown:
		if isClaim(s) {
			return "It does no harm: it is told outcome-unknown until the effect is settled, by the program's evidence or by hand, and then goes on."
		}
		fallthrough
	case admin.RetryWithheld, admin.RetryExpired:
		return "It does no harm and does not help: it is told " + string(s.Retry) + "; nothing runs."
	}
	switch {
	case isClaim(s):
		return "Yes. It takes over and runs as new: no effect has started."
	case len(s.Tasks) > 0 && s.Outcome != admin.OutcomeNotApplied: // it was carried out, or there would be none
		return "Not without need: it runs as new; an effect or a task of the same key is not repeated, everything else would be done a second time."
	case len(effectsThatMayBe(s)) > 0:
		return "Not without need: it runs as new; an effect of the same key is not repeated, everything else would be done a second time."
	case isFree(s), s.Outcome == admin.OutcomeNotApplied:
		return "Yes. It runs as new."
	case s.Outcome == admin.OutcomeCommitted:
		return "No. It runs as new and would do it a second time."
	default:
		return "No, not before you know the outcome: it runs as new and might do it a second time."
	}
}

// newKeyText says whether another key can double anything.
func newKeyText(s admin.Story) string {
	switch {
	case s.NewKey:
		return "Yes. Nothing that is remembered of this key changed anything, so there is nothing to double."
	case s.Retry == admin.RetryWaits:
		return "No. Both would be carried out."
	case unsettled(s.Effects) != nil:
		return "No. Nobody knows whether " + effectName(*unsettled(s.Effects)) + " was applied: it might be done a second time."
	case isClaim(s):
		return "No. Retry with this one: it outdates the first, which may only be late."
	case s.Outcome == admin.OutcomeCommitted && isRefusal(s):
		return "See first what the answer says (`idem keys show`) and what the effect came to (`idem effects show`): the answer is a refusal, and so may be the result."
	case s.Outcome == admin.OutcomeCommitted && s.Remembered != nil && s.Remembered.Outcome == admin.OutcomeCommitted:
		return "No. It would do it a second time."
	case unfinished(s.Tasks) != nil:
		return "No. " + unfinishedText(*unfinished(s.Tasks)) + ": it might be done a second time."
	case s.Outcome == admin.OutcomeCommitted && anyTask(s.Tasks, queue.StatusDone):
		return "No. A task that it has caused is done: it might be done a second time."
	case s.Outcome == admin.OutcomeCommitted:
		return "No. An effect is applied, and a new key might apply another: see first what it came to."
	case len(s.Tasks) > 0 && isFree(s):
		return "No. It has caused " + taskName(s.Tasks[0]) + ", so it was carried out: it might be done a second time."
	case s.Retry == admin.RetryRuns && isFree(s):
		return "No need. This one is free."
	default:
		return "No. It might do it a second time."
	}
}

// moneyText says what became of what the request wrote to the database, and of its
// effects.
func moneyText(s admin.Story) string {
	if s.Retry == admin.RetryWaits {
		return "Not decided: the request is still running."
	}
	if e := unsettled(s.Effects); e != nil {
		return unsettledText(*e, s.Tasks)
	}
	return joined(ownMoneyText(s), tasksText(s.Tasks))
}

// ownMoneyText is moneyText but for the tasks, of a request all of whose effects are
// settled.
func ownMoneyText(s admin.Story) string {
	done := appliedText(s.Effects)
	switch {
	case isClaim(s):
		return cmp.Or(done, calledSince(s), "No effect is applied.") + " Nothing else is committed yet: the request has not ended."
	case s.Remembered != nil && s.Remembered.Outcome == admin.OutcomeCommitted:
		return strings.TrimSuffix("Committed: what the request wrote is in the database. "+done, " ")
	case done != "" && s.Remembered != nil && s.Remembered.Outcome == admin.OutcomeNotApplied:
		return done + " The rest of what the request wrote was rolled back."
	case done != "":
		return done + " What else the request wrote is not known: look at the business's own rows."
	case s.Remembered != nil && s.Remembered.Outcome == admin.OutcomeNotApplied:
		return "Rolled back: the request wrote nothing to the database."
	case s.Remembered == nil:
		return "Nothing is remembered: if it was carried out since, the answer's time is over. Look at the business's own rows."
	case s.Remembered.State == admin.StateClaimed:
		return "Nothing was answered, and no effect is applied."
	case s.Remembered.State == admin.StateUnknown:
		return "Unknown: it may have been committed. Look at the business's own rows."
	default:
		return "Unknown: an older version of Idem stored this answer and did not write it down. Look at the business's own rows."
	}
}

// storyFacts are the lines of the facts: a name and a value each.
func storyFacts(s admin.Story, paint func(color, string) string) [][]string {
	rows := [][]string{{"scope", printable(s.Scope)}, {"key", printable(s.Key)}}
	if k := s.Remembered; k != nil {
		since := "first answered"
		switch k.State {
		case admin.StateUnknown:
			since = "unknown since"
		case admin.StateClaimed:
			since = "first claimed"
		}
		rows = append(rows,
			[]string{"state", paint(stateColor(*k), stateText(*k))},
			[]string{"status", statusText(k.Status)},
			[]string{since, moment(k.CreatedAt)},
			[]string{"until", moment(k.ExpiresAt)})
		if !k.TombstoneUntil.IsZero() {
			rows = append(rows, []string{"remembered until", moment(k.TombstoneUntil)})
		}
		if k.State == admin.StateClaimed {
			rows = append(rows, []string{"lease until", leaseText(*k)}, []string{"claim", k.Fence})
		}
		rows = append(rows, requestRows(*k)...)
	} else {
		rows = append(rows, []string{"state", paint(plain, "absent")})
	}
	return append(rows, []string{"running now", runningText(s)})
}

// runningText says who works on the key.
func runningText(s admin.Story) string {
	if s.Owner == nil && s.Retry == admin.RetryWaits {
		return "yes: on a lease, by the process whose claim it is"
	}
	return ownerText(s.Owner)
}

// ownerText names the session that works on a key.
func ownerText(o *admin.Owner) string {
	if o == nil {
		return "no"
	}
	parts := []string{fmt.Sprintf("yes: server process %d", o.PID)}
	if o.Application != "" {
		parts = append(parts, "application "+printable(o.Application))
	}
	if o.Address != "" {
		parts = append(parts, "from "+printable(o.Address))
	}
	if o.Since.IsZero() {
		parts = append(parts, "since when only a role with pg_read_all_stats may see")
	} else {
		parts = append(parts, fmt.Sprintf("since %s (%s)", moment(o.Since), o.For.Round(time.Millisecond)))
	}
	if o.Activity != "" {
		parts = append(parts, printable(o.Activity))
	}
	return strings.Join(parts, ", ")
}

// auditRows are the lines of the audit: when, what, who, why.
func auditRows(changes []admin.Change) [][]string {
	var rows [][]string
	for _, c := range changes {
		rows = append(rows, []string{"  " + moment(c.At), actionText(c), "by " + printable(c.Actor) + ":", printable(c.Reason)})
	}
	return rows
}

// actionText says what was done; of an effect and a task also to which.
func actionText(c admin.Change) string {
	switch c.Action {
	case "key_release":
		return "released"
	case "effect_settle":
		var detail struct{ Settled string }
		_ = json.Unmarshal(c.Detail, &detail) // without it the line still says what was done
		return fmt.Sprintf("settled %s of %s as %s", printable(c.Key), printable(c.Scope), printable(detail.Settled))
	case "task_retry":
		return fmt.Sprintf("retried task %s of %s", printable(c.Key), printable(c.Scope))
	case "task_cancel":
		return fmt.Sprintf("cancelled task %s of %s", printable(c.Key), printable(c.Scope)) + wasRunning(c)
	case "task_enqueue":
		return fmt.Sprintf("enqueued task %s of %s", printable(c.Key), printable(c.Scope))
	}
	return printable(c.Action)
}

// wasRunning says of a cancelled task that its handler was at work: its cancellation was
// asked for.
func wasRunning(c admin.Change) string {
	var detail struct{ Status queue.Status }
	_ = json.Unmarshal(c.Detail, &detail) // without it the line still says what was done
	if detail.Status != queue.StatusRunning {
		return ""
	}
	return " (it was running, and was asked)"
}

func verdictColor(yes bool) color {
	if yes {
		return green
	}
	return red
}

func outcomeColor(o admin.Outcome) color {
	switch o {
	case admin.OutcomeCommitted:
		return green
	case admin.OutcomeNotApplied:
		return yellow
	default:
		return red
	}
}

// andEffects is the end of a sentence about what is left of a key.
func andEffects(s admin.Story) string {
	if len(s.Effects) == 0 {
		return ""
	}
	return " and effects"
}

// calledSince tells of a claim that has started an effect which now belongs to another
// key.
func calledSince(s admin.Story) string {
	if !s.Remembered.Bound || len(s.Effects) > 0 {
		return ""
	}
	return "An effect that this key had started has been called under another one since, so it may be applied: `idem effects list` shows it."
}

// isRefusal reports whether what is remembered is an answer that refuses, which an
// applied effect may be the reason of: a declined card is a result.
func isRefusal(s admin.Story) bool {
	return s.Remembered != nil && s.Remembered.State == admin.StateAnswered && s.Remembered.Status >= 400 && len(s.Effects) > 0
}
