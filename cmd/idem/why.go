package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

func newWhyCommand(e env) *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:   "why KEY",
		Short: "The story of one key: retry? a new key? what happened to the money?",
		Long: `Tells what is known of one intent, by the key of its request, by the key or the
downstream key of an effect, or by the key or the id of a task: what it was answered,
whether what its request wrote is committed, what came of its tasks and effects, what a
retry gets now, whether a new key is safe, who works on it now, and what was done to it
by hand. The story of a task is that of the request which has caused it, if one has.
Exit code 3 if nothing is known.`,
		Example: `  idem why 4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77
  idem why order-17 --scope alice --json
  idem why charge:payment:17
  idem why refund:17 --scope default`,
		Args: arguments(1, "one KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWhy(cmd, scope, args[0]); err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.why(ctx, db, cmd, scope, args[0])
			})
		},
	}
	addDatabaseFlags(cmd.Flags())
	cmd.Flags().StringVar(&scope, "scope", "", "whose key or effect, or the queue of a task; needed if several have it,\nor none yet")
	return cmd
}

// checkWhy refuses what can be neither the key of a request nor that of an effect or a
// task.
func checkWhy(cmd *cobra.Command, scope, text string) error {
	if err := checkGivenScope(cmd, scope); err != nil {
		return err
	}
	return checkWord("KEY", text, idem.MaxEffectKey)
}

// why tells the story of a key; what is no key of a request may be one of an effect or of a
// task, whose story is that of its cause.
func (e env) why(ctx context.Context, db *idem.DB, cmd *cobra.Command, scope, text string) error {
	story, err := findStory(ctx, db, scope, text)
	if err == nil {
		return e.writeWhy(cmd, story)
	}
	if !isNotFound(err) || admin.ValidEffectKey(text) != nil {
		return err
	}
	if known, err := e.whyOther(ctx, db, cmd, scope, text); known || err != nil {
		return err
	}
	return err
}

// whyOther tells the story of what is an effect or a task, and whether it is known.
func (e env) whyOther(ctx context.Context, db *idem.DB, cmd *cobra.Command, scope, text string) (known bool, err error) {
	effects, err := effectsNamed(ctx, db, scope, text)
	if err != nil {
		return false, err
	}
	if len(effects) > 0 {
		effect, err := findEffect(ctx, db, scope, text)
		if err != nil {
			return true, err
		}
		return true, e.whyEffect(ctx, db, cmd, effect)
	}
	tasks, err := tasksNamed(ctx, db, scope, text)
	switch {
	case err != nil, len(tasks) == 0:
		return false, err
	case len(tasks) > 1:
		return true, usagef("several queues have the task %s; add --scope: %s", printable(text), scopeNames(queuesOf(tasks)))
	}
	return true, e.whyTask(ctx, db, cmd, tasks[0].ID)
}

func isNotFound(err error) bool {
	var coded *exitError
	return errors.As(err, &coded) && coded.code == exitNotFound
}

func (e env) writeWhy(cmd *cobra.Command, story admin.Story) error {
	if asJSON(cmd) {
		return e.writeJSON(newStoryJSON(story))
	}
	return e.writeStory(story, e.painter(cmd))
}

// findStory is the story of a key in the scope, or in the only one that knows it.
func findStory(ctx context.Context, db *idem.DB, scope, text string) (admin.Story, error) {
	key, err := keyArgument(text)
	if err != nil { // longer than any key of a request
		return admin.Story{}, exitf(exitNotFound, "there is no effect and no task %s: it was never started", printable(text))
	}
	if scope == "" {
		if scope, err = onlyScope(ctx, db, key); err != nil {
			return admin.Story{}, err
		}
	}
	story, err := admin.Why(ctx, db, scope, key)
	if errors.Is(err, admin.ErrNotFound) {
		return story, exitf(exitNotFound, "%s of %s is not known: it was never answered, or its time is over and it was swept; a request with it runs as new",
			printable(key), printable(scope))
	}
	return story, err
}

// onlyScope is the one scope in which something is known of the key.
func onlyScope(ctx context.Context, db *idem.DB, key string) (string, error) {
	scopes, err := admin.Scopes(ctx, db, key)
	switch {
	case err != nil:
		return "", err
	case len(scopes) == 0:
		return "", exitf(exitNotFound, "no scope knows %s: it was never answered, or its time is over and it was swept; a request with it runs as new; "+
			"whether one is running now can only be seen with --scope", printable(key))
	case len(scopes) > 1:
		return "", usagef("several scopes have the key %s; add --scope: %s", printable(key), scopeNames(scopes))
	}
	return scopes[0], nil
}

func scopeNames(scopes []string) string {
	var names []string
	for i, scope := range scopes {
		if i == scopesNamed {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(scopes)-scopesNamed)
		}
		names = append(names, printable(scope))
	}
	return strings.Join(names, ", ")
}
