// Package admin holds the statements behind the admin commands. All but
// key_release, key_hold, effect_correct, those that settle and those that end in by_hand,
// ask or tell only read; other than those of a request, they are not bound to a scope.
package admin

import (
	_ "embed"

	"github.com/idem-go/idem/internal/pgsql"
)

//go:embed keys_list.sql
var keysList string

//go:embed keys_find.sql
var keysFind string

//go:embed key_show.sql
var keyShow string

//go:embed writable.sql
var writable string

//go:embed key_hold.sql
var keyHold string

//go:embed key_release.sql
var keyRelease string

//go:embed key_owner.sql
var keyOwner string

//go:embed key_scopes.sql
var keyScopes string

//go:embed key_audit.sql
var keyAudit string

//go:embed key_effects.sql
var keyEffects string

//go:embed effects_list.sql
var effectsList string

//go:embed effects_find.sql
var effectsFind string

//go:embed effect_show.sql
var effectShow string

//go:embed effect_audit.sql
var effectAudit string

//go:embed effect_settle_applied.sql
var effectSettleApplied string

//go:embed effect_settle_absent.sql
var effectSettleAbsent string

//go:embed effect_correct.sql
var effectCorrect string

//go:embed tasks_list.sql
var tasksList string

//go:embed tasks_count.sql
var tasksCount string

//go:embed tasks_choose.sql
var tasksChoose string

//go:embed tasks_find.sql
var tasksFind string

//go:embed tasks_caused.sql
var tasksCaused string

//go:embed tasks_effects.sql
var tasksEffects string

//go:embed task_show.sql
var taskShow string

//go:embed task_root.sql
var taskRoot string

//go:embed task_audit.sql
var taskAudit string

//go:embed task_retry_by_hand.sql
var taskRetry string

//go:embed task_cancel_by_hand.sql
var taskCancel string

//go:embed task_cancel_ask.sql
var taskCancelAsk string

//go:embed task_cancel_tell.sql
var taskCancelTell string

//go:embed task_enqueue_by_hand.sql
var taskEnqueue string

//go:embed queues_with_tasks.sql
var queuesWithTasks string

//go:embed queue_pause_by_hand.sql
var queuePause string

//go:embed queue_resume_by_hand.sql
var queueResume string

// The statements; the header of each file is its contract.
var (
	KeysList   = pgsql.Statement(keysList)
	KeysFind   = pgsql.Statement(keysFind)
	KeyShow    = pgsql.Statement(keyShow)
	KeyHold    = pgsql.Statement(keyHold)
	KeyRelease = pgsql.Statement(keyRelease)
	KeyOwner   = pgsql.Statement(keyOwner)
	KeyScopes  = pgsql.Statement(keyScopes)
	KeyAudit   = pgsql.Statement(keyAudit)
	KeyEffects = pgsql.Statement(keyEffects)
	Writable   = pgsql.Statement(writable)

	EffectsList         = pgsql.Statement(effectsList)
	EffectsFind         = pgsql.Statement(effectsFind)
	EffectShow          = pgsql.Statement(effectShow)
	EffectAudit         = pgsql.Statement(effectAudit)
	EffectSettleApplied = pgsql.Statement(effectSettleApplied)
	EffectSettleAbsent  = pgsql.Statement(effectSettleAbsent)
	EffectCorrect       = pgsql.Statement(effectCorrect)

	TasksList      = pgsql.Statement(tasksList)
	TasksCount     = pgsql.Statement(tasksCount)
	TasksChoose    = pgsql.Statement(tasksChoose)
	TasksFind      = pgsql.Statement(tasksFind)
	TasksCaused    = pgsql.Statement(tasksCaused)
	TasksEffects   = pgsql.Statement(tasksEffects)
	TaskShow       = pgsql.Statement(taskShow)
	TaskRoot       = pgsql.Statement(taskRoot)
	TaskAudit      = pgsql.Statement(taskAudit)
	TaskRetry      = pgsql.Statement(taskRetry)
	TaskCancel     = pgsql.Statement(taskCancel)
	TaskCancelAsk  = pgsql.Statement(taskCancelAsk)
	TaskCancelTell = pgsql.Statement(taskCancelTell)
	TaskEnqueue    = pgsql.Statement(taskEnqueue)

	QueuesWithTasks = pgsql.Statement(queuesWithTasks)
	QueuePause      = pgsql.Statement(queuePause)
	QueueResume     = pgsql.Statement(queueResume)
)
