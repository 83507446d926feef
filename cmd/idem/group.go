package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newGroup makes a command that only holds others. Cobra would answer an
// unknown word below a group with the help text and success.
func newGroup(group *cobra.Command) *cobra.Command {
	group.Args = cobra.ArbitraryArgs
	group.SuggestionsMinimumDistance = 2
	group.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		if cmd.HasParent() {
			return usagef("%s needs a command: %s", pathBelowRoot(cmd), strings.Join(commandNames(cmd), ", "))
		}
		return cmd.Help()
	}
	return group
}

// groupCompletion makes cobra's own group behave like ours.
func groupCompletion(root *cobra.Command) {
	for _, child := range root.Commands() {
		if child.Name() == "completion" {
			child.Short = "Completion for bash, fish, powershell or zsh"
			child.Long = "Writes the script that completes idem's commands and flags in a shell."
			child.Example = "  source <(idem completion bash)"
			newGroup(child)
		}
	}
}

func unknownCommand(cmd *cobra.Command, word string) error {
	hint := "run " + cmd.CommandPath() + " --help"
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		hint = "did you mean " + cmd.CommandPath() + " " + strings.Join(near, " or ") + "?"
	}
	where := ""
	if cmd.HasParent() {
		where = " below " + pathBelowRoot(cmd)
	}
	if strings.Contains(word, ":") { // a database URL in a wrong place
		return usagef("that is no command%s; %s", where, hint)
	}
	return usagef("no command %q%s; %s", word, where, hint)
}

// pathBelowRoot is a command's path without the program's name, which every
// message begins with.
func pathBelowRoot(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// arguments checks the number of a command's arguments. what says in words what
// the command takes.
func arguments(count int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return fmt.Errorf("%s takes %s; run %s --help", pathBelowRoot(cmd), what, cmd.CommandPath())
	}
}

func noArguments() cobra.PositionalArgs { return arguments(0, "no arguments") }
