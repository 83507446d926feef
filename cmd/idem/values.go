package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The checks of this file name what was given as whoever runs the command has written it, a
// flag or an argument, and say what to write instead. The packages below check again, in
// the words of their own users, who write Go.

// checkWord checks what must be 1 to most bytes of visible ASCII: a key, the name of a
// queue or a kind.
func checkWord(what, word string, most int) error {
	switch {
	case word == "":
		return usagef("%s is empty; write 1 to %d bytes of visible ASCII, such as receipt:17", what, most)
	case len(word) > most:
		return usagef("%s has %d bytes, it may have 1 to %d", what, len(word), most)
	}
	for i := range len(word) {
		if word[i] < 0x21 || word[i] > 0x7e {
			return usagef("byte %d of %s is not visible ASCII; write words and ids, such as receipt:17", i+1, what)
		}
	}
	return nil
}

// checkText checks what must be 1 to most bytes of UTF-8 without NUL: a scope, a reason.
func checkText(what, text string, most int) error {
	switch {
	case text == "":
		return usagef("%s is empty; write 1 to %d bytes of text", what, most)
	case len(text) > most:
		return usagef("%s has %d bytes, it may have 1 to %d", what, len(text), most)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return usagef("%s is not UTF-8; write it in a terminal that is set to that", what)
	}
	return nil
}

// checkScope checks --scope.
func checkScope(scope string) error { return checkText("--scope", scope, idem.MaxScope) }

// checkFlags checks those of the named flags that were given, as checkWord does.
func checkFlags(cmd *cobra.Command, most int, names ...string) error {
	for _, name := range names {
		if flag := cmd.Flag(name); flag.Changed {
			if err := checkWord("--"+name, flag.Value.String(), most); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkGivenScope checks --scope if it was given.
func checkGivenScope(cmd *cobra.Command, scope string) error {
	if !cmd.Flag("scope").Changed {
		return nil
	}
	return checkScope(scope)
}

// checkRange checks a number.
func checkRange(what string, number, least, most int) error {
	if number < least || number > most {
		return usagef("%s is %d, it may be %d to %d", what, number, least, most)
	}
	return nil
}

// checkDuration checks a duration.
func checkDuration(what string, d, least, most time.Duration) error {
	if d < least || d > most {
		return usagef("%s is %s, it may be %s to %s", what, shortDuration(d), shortDuration(least), shortDuration(most))
	}
	return nil
}

// shortDuration is d as flags take it, without the minutes and seconds of whole hours.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "h0m0s") {
		return strings.TrimSuffix(text, "0m0s")
	}
	return text
}

// checkBy checks who changes something, and why.
func checkBy(cmd *cobra.Command, by admin.By) error {
	switch {
	case strings.TrimSpace(by.Reason) == "":
		return usagef("%s needs --reason: it is written down for whoever asks later", pathBelowRoot(cmd))
	case strings.TrimSpace(by.Actor) == "":
		return usagef("%s needs --actor: who does this?", pathBelowRoot(cmd))
	}
	return cmp.Or(checkText("--reason", by.Reason, admin.MaxReason), checkText("--actor", by.Actor, admin.MaxActor))
}

// checkTaskName checks what names one task.
func checkTaskName(text string) error { return checkWord("the ID or KEY", text, queue.MaxKey) }

// flagFault says what is wrong with a flag that cannot be read.
func flagFault(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%s; run %s --help", err, cmd.CommandPath())
	}
	return usagef("--%s is %q, it must be %s; run %s --help", invalid.GetFlag().Name, invalid.GetValue(), flagForm(invalid), cmd.CommandPath())
}

// flagForm says what a flag takes.
func flagForm(invalid *pflag.InvalidValueError) string {
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "duration":
		return "a duration such as 90s or 24h"
	case kind == "bool":
		return "true or false, or have no value"
	case errors.Is(invalid, strconv.ErrRange):
		return "a whole number with fewer digits"
	case strings.HasPrefix(kind, "uint"):
		return "a whole number from 0 on"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	default:
		return fmt.Sprintf("a %s (%v)", kind, invalid.Unwrap())
	}
}
