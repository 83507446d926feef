package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

// scopesNamed is how many scopes a message lists before it stops: it is one line.
const scopesNamed = 5

func newKeysShowCommand(e env) *cobra.Command {
	var scope string
	var body bool
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "All that is remembered of one key",
		Long: `Shows what is remembered of one key, also if its time is over. The stored body may
hold what only the caller may see: it is shown with --body.`,
		Example: `  idem keys show 4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77
  idem keys show order-17 --scope alice --body
  idem keys show -- -a-key-with-a-dash`,
		Args: arguments(1, "one KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := keyArgument(args[0])
			if err != nil {
				return err
			}
			if err := checkGivenScope(cmd, scope); err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				k, err := findOne(ctx, db, scope, key)
				if err != nil {
					return err
				}
				return e.writeKey(k, cmd, body)
			})
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "whose key; needed if several scopes have it")
	cmd.Flags().BoolVar(&body, "body", false, "show the stored body, too")
	return cmd
}

// keyArgument reads a key as clients write it, "abc" or abc; what is no header
// value but a key, as keys list prints it, is taken as it is.
func keyArgument(text string) (string, error) {
	if key, err := idem.ParseKey(text); err == nil {
		return key, nil
	}
	return text, checkWord("KEY", text, idem.MaxKey)
}

// findOne finds the key in the scope, or in the only one that has it.
func findOne(ctx context.Context, db *idem.DB, scope, key string) (admin.Key, error) {
	if scope == "" {
		found, err := admin.FindKey(ctx, db, key)
		if err != nil {
			return admin.Key{}, err
		}
		if len(found) == 0 {
			return admin.Key{}, exitf(exitNotFound, "no scope remembers the key %s", key)
		}
		if len(found) > 1 {
			return admin.Key{}, usagef("several scopes have the key %s; add --scope: %s", key, scopeNames(scopesOf(found)))
		}
		scope = found[0].Scope
	}
	k, err := admin.ShowKey(ctx, db, scope, key)
	if errors.Is(err, admin.ErrNotFound) {
		return admin.Key{}, exitf(exitNotFound, "the scope %s does not remember the key %s", printable(scope), key)
	}
	return k, err
}

func scopesOf(found []admin.Key) []string {
	scopes := make([]string, len(found))
	for i, k := range found {
		scopes[i] = k.Scope
	}
	return scopes
}

// writeKey writes one key, with its body if asked.
func (e env) writeKey(k admin.Key, cmd *cobra.Command, body bool) error {
	if asJSON(cmd) {
		return e.writeJSON(keyWithBody(k, body))
	}
	if err := e.writeTable(keyDetails(k, e.painter(cmd))); err != nil || !body || len(k.Body) == 0 {
		return err
	}
	return e.write("\n" + bodyText(k.Body))
}

// keyWithBody is the key as JSON: its body as text where it is text.
func keyWithBody(k admin.Key, body bool) keyJSON {
	out := newKeyJSON(k)
	switch {
	case !body || k.Body == nil:
	case utf8.Valid(k.Body):
		text := string(k.Body)
		out.Body = &text
	default:
		out.BodyBase64 = k.Body
	}
	return out
}

// keyDetails are the lines of idem keys show: a name and a value each.
func keyDetails(k admin.Key, paint func(color, string) string) [][]string {
	rows := [][]string{
		{"scope", printable(k.Scope)},
		{"key", printable(k.Key)},
		{"state", paint(stateColor(k), stateText(k))},
		{"status", statusText(k.Status)},
		{"created", moment(k.CreatedAt)},
		{"expires", moment(k.ExpiresAt)},
		{"writes", writesText(k.Outcome)},
	}
	if !k.TombstoneUntil.IsZero() {
		rows = append(rows, []string{"remembered until", moment(k.TombstoneUntil)})
	}
	if k.State == admin.StateClaimed {
		rows = append(rows, []string{"lease until", leaseText(k)}, []string{"bound", boundText(k.Bound)}, []string{"claim", k.Fence})
	}
	rows = append(rows, requestRows(k)...)
	rows = append(rows, []string{"fingerprint", fmt.Sprintf("%s (version %d)", hex.EncodeToString(k.Fingerprint), k.FingerprintVersion)})
	if k.State != admin.StateAnswered {
		return rows
	}
	rows = append(rows, []string{"headers", cmp.Or(printable(strings.Join(headerNames(k), ", ")), "none")})
	if k.Reference != "" {
		return append(rows, []string{"reference", printable(k.Reference)})
	}
	return append(rows, []string{"body", fmt.Sprintf("%d bytes", k.BodyBytes)})
}

// requestRows say where the request that wrote a row is found: in logs and in traces.
func requestRows(k admin.Key) (rows [][]string) {
	if k.RequestID != "" {
		rows = append(rows, []string{"request", printable(k.RequestID)})
	}
	if k.Traceparent != "" {
		rows = append(rows, []string{"trace", printable(k.Traceparent)})
	}
	return rows
}

// leaseText says until when the owner of a claimed key is trusted to live.
func leaseText(k admin.Key) string {
	if k.LeaseUntil.IsZero() {
		return "ended by its owner"
	}
	return moment(k.LeaseUntil)
}

// boundText says whether a claimed key belongs to its request for good.
func boundText(bound bool) string {
	if bound {
		return "yes: an effect has started, only the same request may go on"
	}
	return "no: no effect has started, the key is free at the end of the lease"
}

// writesText says what became of what the request wrote.
func writesText(o admin.Outcome) string {
	switch o {
	case admin.OutcomeCommitted:
		return "committed"
	case admin.OutcomeNotApplied:
		return "rolled back"
	default:
		return "unknown"
	}
}

// bodyText is a body as a terminal may show it: text as it is, anything else in
// hexadecimal.
func bodyText(body []byte) string {
	text := strings.ReplaceAll(string(body), "\r\n", "\n")
	harmful := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, harmful) {
		return hex.Dump(body)
	}
	return strings.TrimSuffix(text, "\n") + "\n"
}
