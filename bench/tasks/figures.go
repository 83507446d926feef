package main

import (
	"slices"
	"time"
)

// The phases of a repetition. The tasks that noop works off are enqueued by many.
const (
	single  = "enqueue one by one"
	many    = "enqueue 1000 at once"
	noop    = "no-op tasks"
	insert  = "tasks with one INSERT"
	latency = "from enqueueing to start"
	killed  = "kill -9 in the middle"
)

var phases = []string{single, many, noop, insert, latency, killed}

// figures are one measurement of one subject. CPU and WAL are those of the whole
// PostgreSQL, which serves nobody else meanwhile.
type figures struct {
	Subject     string  `json:"subject"`
	Phase       string  `json:"phase"`
	Rep         int     `json:"rep"`
	Tasks       int     `json:"tasks"`
	CutShort    bool    `json:"cut_short,omitempty"` // the time was over before the tasks were
	Rate        float64 `json:"tasks_per_second,omitempty"`
	WAL         float64 `json:"wal_bytes_per_task"`
	PostgresCPU float64 `json:"postgres_cpu_us_per_task"`
	ProcessCPU  float64 `json:"process_cpu_us_per_task"`
	RedisCPU    float64 `json:"redis_cpu_us_per_task,omitempty"`
	P50         float64 `json:"p50_ms,omitempty"`
	P99         float64 `json:"p99_ms,omitempty"`
	*Left       `json:"left,omitempty"`
}

// Left is what a killed worker has left.
type Left struct {
	Applied int `json:"applied"` // effects at the kill
	Stuck   int `json:"stuck"`   // tasks that were taken and not done
	Twice   int `json:"twice"`   // effects that were applied again
	Lost    int `json:"lost"`    // tasks without an effect in the end
	Undone  int `json:"undone"`  // tasks that were not done in the end
}

// cpu is what a task costs on all sides.
func (f figures) cpu() float64 { return f.PostgresCPU + f.ProcessCPU + f.RedisCPU }

// meters are the counters that are read before and after.
type meters struct {
	wal                      float64
	postgres, process, redis time.Duration
}

// per fills in what n tasks have cost each.
func (f *figures) per(n int, before, after meters) {
	f.Tasks = n
	per := func(before, after time.Duration) float64 {
		return float64((after - before).Microseconds()) / float64(n)
	}
	f.WAL = (after.wal - before.wal) / float64(n)
	f.PostgresCPU = per(before.postgres, after.postgres)
	f.ProcessCPU = per(before.process, after.process)
	f.RedisCPU = per(before.redis, after.redis)
}

// percentile is of values in any order, which it sorts.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(float64(len(values)-1)*p)]
}
