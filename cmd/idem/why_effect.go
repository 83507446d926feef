package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

// whyEffect tells the story of an effect: what it is, and the story of the request
// that has called it last, or whose task has, of which it is a part.
func (e env) whyEffect(ctx context.Context, db *idem.DB, cmd *cobra.Command, effect admin.Effect) error {
	by, intent, task, err := effectIntent(ctx, db, effect)
	switch {
	case err != nil:
		return err
	case task != nil && intent.Door != "request":
		return e.whyEffectOfTask(cmd, effect, *task)
	case intent.Door != "request":
		return e.whyEffectAlone(ctx, db, cmd, effect)
	}
	story, err := admin.Why(ctx, db, intent.Scope, intent.Key)
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		out := newStoryJSON(story)
		return e.writeEffectStory(effect, task, &out)
	}
	head := effectHead(effect, by)
	if by != intent {
		head = strings.TrimSuffix(head, ".\n") + "; that belongs to " + intentText(intent) + ".\n"
	}
	if err := e.write(head); err != nil {
		return err
	}
	return e.writeStory(story, e.painter(cmd))
}

// effectIntent is what has called an effect last, and the intent that this belongs to; if
// it is a task that is still there, that too.
func effectIntent(ctx context.Context, db *idem.DB, effect admin.Effect) (by, root admin.Intent, task *admin.TaskStory, err error) {
	by = caller(effect)
	if by.Door != "task" {
		return by, by, nil, nil
	}
	id, err := strconv.ParseInt(by.Key, 10, 64)
	if err != nil {
		return by, by, nil, nil // no task of Idem's
	}
	story, err := admin.ShowTask(ctx, db, id)
	switch {
	case errors.Is(err, admin.ErrNoTask):
		return by, by, nil, nil // its time is over
	case err != nil:
		return by, by, nil, err
	}
	return by, story.Root, &story, nil
}

func effectHead(effect admin.Effect, by admin.Intent) string {
	return effectName(effect) + " is an effect of " + intentText(by) + ": " + effectText(effect) + ".\n"
}

// whyEffectOfTask tells of an effect of a task that no request has caused.
func (e env) whyEffectOfTask(cmd *cobra.Command, effect admin.Effect, task admin.TaskStory) error {
	if asJSON(cmd) {
		return e.writeEffectStory(effect, &task, nil)
	}
	if err := e.write(effectHead(effect, task.Task.Intent())); err != nil {
		return err
	}
	return e.writeTaskStory(cmd, task)
}

// whyEffectAlone tells of an effect that nothing has caused which is still there.
func (e env) whyEffectAlone(ctx context.Context, db *idem.DB, cmd *cobra.Command, effect admin.Effect) error {
	if asJSON(cmd) {
		return e.writeEffectStory(effect, nil, nil)
	}
	return e.writeEffect(ctx, db, cmd, effect, false)
}

func (e env) writeEffectStory(effect admin.Effect, task *admin.TaskStory, story *storyJSON) error {
	out := struct {
		Effect effectJSON     `json:"effect"`
		Task   *taskStoryJSON `json:"task,omitempty"`
		Story  *storyJSON     `json:"story"`
	}{Effect: newEffectJSON(effect), Story: story}
	if task != nil {
		of := newTaskStoryJSON(*task)
		out.Task = &of
	}
	return e.writeJSON(out)
}
