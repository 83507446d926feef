package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// write puts data on stdout. An output that is lost is a failure.
func (e env) write(text string) error {
	if _, err := io.WriteString(e.stdout, text); err != nil {
		return exitf(exitFailed, "cannot write the output: %w", err)
	}
	return nil
}

// writeJSON puts one JSON value on stdout.
func (e env) writeJSON(value any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return e.write(text.String())
}

// writeTable puts rows on stdout in aligned columns.
func (e env) writeTable(rows [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return e.write(text.String())
}

// note puts a message on stderr.
func (e env) note(format string, args ...any) {
	fmt.Fprintf(e.stderr, "idem: "+format+"\n", args...)
}

// printable returns text as it is if a terminal shows it as it is, else quoted:
// what clients sent must not move an operator's cursor.
func printable(text string) string {
	harmful := func(r rune) bool { return !strconv.IsPrint(r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, harmful) {
		return strconv.Quote(text)
	}
	return text
}

// moment formats a time for people; the zero time is never.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// color is the number of an ANSI colour. All have two digits, so that coloured
// cells of one column stay aligned.
type color int

const (
	plain  color = 39
	green  color = 32
	yellow color = 33
	red    color = 31
)

// painter returns a function that colours text if stdout is a terminal and
// nobody asked for none.
func (e env) painter(cmd *cobra.Command) func(color, string) string {
	if off, err := cmd.Flags().GetBool("no-color"); err != nil || off || !e.colorful() {
		return func(_ color, text string) string { return text }
	}
	return ansi
}

// ansi is text in a colour, for a terminal.
func ansi(c color, text string) string { return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text) }

func (e env) colorful() bool {
	if e.getenv("NO_COLOR") != "" || e.getenv("TERM") == "dumb" {
		return false
	}
	return isTerminal(e.stdout)
}
