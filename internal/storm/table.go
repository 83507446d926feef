package storm

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Write writes the report as a table for people, guarded and unguarded side by
// side, the payments and the tasks below, and a plain sentence at the end.
func (r *Report) Write(w io.Writer) error {
	var out strings.Builder
	g, u, b := r.Guarded, r.Unguarded, r.Bookings
	row := func(name string, guarded, unguarded any) {
		fmt.Fprintf(&out, "  %-38s %12s  %22s\n", name, cell(guarded), cell(unguarded))
	}
	row("", "POST "+g.Path, "POST "+u.Path)
	row("intents", g.Intents, u.Intents)
	row("requests", g.Requests, u.Requests)
	for _, status := range statuses(g, u) {
		row(fmt.Sprintf("answered %d %s", status, http.StatusText(status)), g.Answers[status], u.Answers[status])
	}
	row("clients that hung up", g.HungUp, u.HungUp)
	row("replays of a stored answer", g.Replays, u.Replays)
	row("answers unlike the intent's first", g.Differing, u.Differing)
	row("mismatches tried", g.Altered, u.Altered)
	row("mismatches refused", g.AlteredRefused, u.AlteredRefused)
	row("orders in the database", g.Database.Rows, u.Database.Rows)
	row("intents with more than one order", g.Database.Doubled, u.Database.Doubled)
	row("double orders", g.doubles(), u.doubles())
	row("rows that break an invariant", len(r.Violations), "-")
	r.Payments.write(&out)
	r.writeTasks(&out)
	fmt.Fprintf(&out, "\n  Bookings: %s raced for %s with %s; %s got one, %s found it taken.\n",
		several(b.Intents, "customer"), several(b.Slots, "slot"), several(b.Requests, "request"), cell(b.Won), cell(b.Lost))
	fmt.Fprintf(&out, "  Network: %s cut, %s refused, %s delayed, %s repeated.\n", several(r.Network.Cuts, "connection"),
		cell(r.Network.Refused), several(r.Network.Delays, "piece"), several(r.Network.Repeats, "request"))
	fmt.Fprintf(&out, "  Killed with SIGKILL: %s, %s, and the bank %s.\n", several(r.Kills.Shops, "shop"),
		several(r.Kills.Clients, "client process"), several(r.Kills.Banks, "time"))
	fmt.Fprintf(&out, "  Seed %d, %.1f s.\n\n", r.Seed, r.Seconds)
	out.WriteString(r.sentence())
	_, err := io.WriteString(w, out.String())
	return err
}

// sentence says what it all comes to.
func (r *Report) sentence() string {
	if failures := r.Failures(); len(failures) > 0 {
		return "The proof fails: " + strings.Join(failures, "; ") + ".\n"
	}
	return fmt.Sprintf("The proof holds: %s, sent in %s through %s and %s, made %s, %s, %s and %s; without the guard they made %s.\n",
		several(r.Guarded.Intents, "intent"), several(r.Guarded.Requests+r.Payments.Requests+r.Refunds.Requests, "request"),
		several(r.Network.Cuts, "cut connection"), several(r.Kills.Shops+r.Kills.Banks, "killed process"),
		several(r.Guarded.Database.Rows, "order"), several(r.Payments.Charges, "charge"),
		several(r.Tasks.Receipts.Rows, "receipt"), several(r.Payments.Returns, "refund"),
		several(r.Unguarded.Database.Rows, "order"))
}

// write writes what came of the payments.
func (p Payments) write(out io.Writer) {
	row := func(name string, value any) { fmt.Fprintf(out, "  %-38s %12s\n", name, cell(value)) }
	fmt.Fprintln(out)
	row("", "POST "+p.Path)
	row("orders to be paid", p.Orders)
	row("keys to pay them from", p.Intents)
	row("requests", p.Requests)
	for _, status := range statuses(p.Column) {
		row(fmt.Sprintf("answered %d %s", status, http.StatusText(status)), p.Answers[status])
	}
	row("replays of a stored answer", p.Replays)
	row("answers unlike the key's first", p.Differing)
	row("mismatches tried", p.Altered)
	row("mismatches refused", p.AlteredRefused)
	row("effects found unknown", p.Unknown)
	row("of them settled by the bank's record", p.Settled)
	row("effects still unknown", p.Unsettled)
	row("charges at the bank", p.Charges)
	row("payments in the shop", p.Payments)
	row("payments charged more than once", p.ChargedTwice)
	row("orders paid more than once", p.Database.Doubled)
	row("kept by the bank, not in the ledger", p.kept()-p.Cash)
	row("sum of the ledger", p.LedgerSum)
}

// writeTasks writes what came of the refunds, and of all tasks.
func (r *Report) writeTasks(out io.Writer) {
	row := func(name string, value any) { fmt.Fprintf(out, "  %-38s %12s\n", name, cell(value)) }
	f, p := r.Refunds, r.Payments
	fmt.Fprintln(out)
	row("", "POST "+f.Path)
	row("payments to be refunded", f.Payments)
	row("keys to refund them from", f.Intents)
	row("requests", f.Requests)
	for _, status := range statuses(f.Column) {
		row(fmt.Sprintf("answered %d %s", status, http.StatusText(status)), f.Answers[status])
	}
	row("replays of a stored answer", f.Replays)
	row("answers unlike the key's first", f.Differing)
	row("mismatches tried", f.Altered)
	row("mismatches refused", f.AlteredRefused)
	row("refunds at the bank", p.Returns)
	row("refunds in the shop", p.Books.Refunds)
	row("payments refunded more than once", p.ReturnedTwice)
	fmt.Fprintln(out)
	row("", "tasks")
	row("receipts of the orders", r.Tasks.Receipts.Rows)
	row("tasks that are done", r.Tasks.Done)
	row("tasks that were taken again", r.Tasks.Again)
	row("tasks that are stuck", r.Tasks.stuck())
	row("tasks that were applied twice", r.appliedTwice())
}

func statuses(columns ...Column) []int {
	all := map[int]bool{}
	for _, c := range columns {
		for status := range c.Answers {
			all[status] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// several writes a number of things.
func several[N int | int64](n N, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}
	return cell(n) + " " + thing
}

// cell writes a number with commas between its thousands.
func cell(v any) string {
	text := fmt.Sprint(v)
	if _, err := strconv.Atoi(text); err != nil {
		return text
	}
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}
