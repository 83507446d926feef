// Package tasks holds the statements of the second door, on idem.tasks, idem.takes and
// idem.queues: those of an enqueuer, those of a worker and its takes, and the sweeper's.
package tasks

import (
	_ "embed"

	"github.com/idem-go/idem/internal/pgsql"
)

//go:embed listen.sql
var listen string

//go:embed listen_cancel.sql
var listenCancel string

//go:embed queue_pause.sql
var pause string

//go:embed queue_resume.sql
var resume string

//go:embed take_end.sql
var endTakes string

//go:embed take_sweep.sql
var sweepTakes string

//go:embed tasks_undo.sql
var undo string

//go:embed task_begin.sql
var begin string

//go:embed task_cancel.sql
var cancel string

//go:embed task_done.sql
var done string

//go:embed task_enqueue.sql
var enqueue string

//go:embed task_expire.sql
var expire string

//go:embed task_fail.sql
var fail string

//go:embed task_fence.sql
var fence string

//go:embed task_find.sql
var find string

//go:embed task_forget.sql
var forget string

//go:embed task_look.sql
var look string

//go:embed task_renew.sql
var renew string

//go:embed task_rescue.sql
var rescue string

//go:embed task_retry.sql
var retry string

//go:embed task_snooze.sql
var snooze string

//go:embed task_stands.sql
var stands string

//go:embed task_start.sql
var start string

//go:embed task_sweep.sql
var sweep string

//go:embed task_take.sql
var take string

//go:embed task_take_alone.sql
var takeAlone string

//go:embed tasks_done.sql
var doneAll string

//go:embed tasks_forget.sql
var forgetAll string

//go:embed tasks_return.sql
var giveBack string

//go:embed wake.sql
var wakeUp string

// The statements; the header of each file is its contract.
var (
	Listen       = pgsql.Statement(listen)
	ListenCancel = pgsql.Statement(listenCancel)
	Pause        = pgsql.Statement(pause)
	Resume       = pgsql.Statement(resume)
	EndTakes     = pgsql.Statement(endTakes)
	Undo         = pgsql.Statement(undo)
	SweepTakes   = pgsql.Statement(sweepTakes)
	Begin        = pgsql.Statement(begin)
	Cancel       = pgsql.Statement(cancel)
	Done         = pgsql.Statement(done)
	Enqueue      = pgsql.Statement(enqueue)
	Expire       = pgsql.Statement(expire)
	Fail         = pgsql.Statement(fail)
	Fence        = pgsql.Statement(fence)
	Find         = pgsql.Statement(find)
	Forget       = pgsql.Statement(forget)
	Look         = pgsql.Statement(look)
	Renew        = pgsql.Statement(renew)
	Rescue       = pgsql.Statement(rescue)
	Retry        = pgsql.Statement(retry)
	Snooze       = pgsql.Statement(snooze)
	Stands       = pgsql.Statement(stands)
	Start        = pgsql.Statement(start)
	Sweep        = pgsql.Statement(sweep)
	Take         = pgsql.Statement(take)
	TakeAlone    = pgsql.Statement(takeAlone)
	DoneAll      = pgsql.Statement(doneAll)
	ForgetAll    = pgsql.Statement(forgetAll)
	Return       = pgsql.Statement(giveBack)
	Wake         = pgsql.Statement(wakeUp)
)
