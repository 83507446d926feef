package queue_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

var killedTasks = flag.Int("killed-tasks", 20_000, "the tasks of TestT11_threeProcessesAreKilledAllTheTime")

// killEvery is the time from one kill to the next.
const killEvery = 2 * time.Second

// Three processes of a hundred workers each have tasks with an effect each. Every two
// seconds one of them is killed and another started.
func TestT11_threeProcessesAreKilledAllTheTime(t *testing.T) {
	n := *killedTasks
	if testing.Short() {
		n = 2_000
	}
	f := newFloor(t)
	f.exec("alter table runs add primary key (n), add at timestamptz not null default clock_timestamp()")
	o := orders{URL: f.url, Concurrency: 100, Connections: 30, Lease: shortLease, Timeout: time.Minute, Attempts: 25}
	f.enqueue(o.kind(), jobs(n, "effect")...)
	var crew []*process
	for range 3 {
		crew = append(crew, startProcess(t, o))
	}
	f.until("all of them work", 30*time.Second, func() bool {
		return !slices.ContainsFunc(crew, func(p *process) bool { return p.says("runs ") == 0 })
	})
	var deaths []death
	done := func() int { return valueOf[int](f, "select count(*) from runs") }
	limit := time.Now().Add(time.Minute + time.Duration(n)*time.Millisecond*5)
	for i := 0; done() < n; i = (i + 1) % len(crew) {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d tasks are done", done(), n)
		}
		at := f.now()
		crew[i].kill()
		deaths = append(deaths, death{at, crew[i].unfinished()})
		crew[i] = startProcess(t, o)
		for next := time.Now().Add(killEvery); time.Now().Before(next) && done() < n; time.Sleep(20 * time.Millisecond) {
		}
	}
	f.untilCount(n, 30*time.Second, "select count(*) from idem.tasks where status = 'done'")
	for _, p := range crew {
		p.stop()
	}
	f.wantCount(n, "select count(*) from runs")
	f.wantCount(n, "select count(*) from idem.applied_effects where status = 'applied'")
	f.wantCount(0, "select count(*) from idem.tasks where takes < attempts")
	f.wantCount(0, "select count(*) from idem.takes")
	f.tellTakeOvers(deaths)
}

// death is the kill of a process.
type death struct {
	at      time.Time // by the server's clock
	running []int     // what its handlers were at
}

// unfinished are the jobs whose handlers the process has started, and of whose end it has
// not told. It has ended, and every line of its was read.
func (p *process) unfinished() (all []int) {
	open := map[int]int{}
	for _, line := range p.lines {
		var result string
		var n int
		if _, err := fmt.Sscanf(line, "runs %d", &n); err == nil {
			open[n]++
		} else if _, err := fmt.Sscanf(line, "ended %s %d", &result, &n); err == nil {
			open[n]-- // the floor has no other tasks: their ids are their numbers
		}
	}
	for n, times := range open {
		if times > 0 {
			all = append(all, n)
		}
	}
	return all
}

// tellTakeOvers logs how long after a kill the tasks that were running then were found, and
// done, by others. It fails if one was found late.
func (f *floor) tellTakeOvers(deaths []death) {
	f.t.Helper()
	var found, done []float64
	for _, d := range deaths {
		rows, err := f.pool.Query(f.t.Context(), `select extract(epoch from (e.error ->> 'at')::timestamptz - $1)::float8, extract(epoch from r.at - $1)::float8
			from idem.tasks as t join runs as r on r.n = t.id
			cross join lateral (select error from jsonb_array_elements(t.errors) as error where (error ->> 'at')::timestamptz > $1 limit 1) as e
			where t.id = any($2) and r.at > $1`, d.at, d.running)
		if err != nil {
			f.t.Fatal(err)
		}
		for rows.Next() {
			var fs, ds float64
			if err := rows.Scan(&fs, &ds); err != nil {
				f.t.Fatal(err)
			}
			found, done = append(found, fs), append(done, ds)
		}
		if rows.Err() != nil {
			f.t.Fatal(rows.Err())
		}
	}
	if len(found) == 0 {
		f.t.Fatal("no kill has hit a handler")
	}
	slices.Sort(found)
	slices.Sort(done)
	at := func(all []float64, share float64) float64 { return all[int(share*float64(len(all)-1))] }
	f.t.Logf("%d kills hit %d handlers; their tasks were given back after %.2f s (p50), %.2f s (p99), and done by others after %.2f s (p50), %.2f s (p99); the lease is %v",
		len(deaths), len(found), at(found, .5), at(found, .99), at(done, .5), at(done, .99), shortLease)
	if last := found[len(found)-1]; last > 6 {
		f.t.Errorf("one was found after %.2f s, want %v and 2 s, and as much again on a busy machine", last, shortLease)
	}
}
