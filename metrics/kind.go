package metrics

import (
	"github.com/idem-go/idem"
	"github.com/prometheus/client_golang/prometheus"
)

// kind has what the events of one kind of tasks count.
type kind struct {
	results  map[idem.TaskResult]prometheus.Counter
	attempts prometheus.Observer
	seconds  prometheus.Observer
	delay    prometheus.Observer
}

// kind is that of a name in a queue, made at zero if it is new.
func (m *Metrics) kind(queue, name string) *kind {
	n := kindName{queue, name}
	m.mu.RLock()
	k := m.kinds[n]
	m.mu.RUnlock()
	if k != nil {
		return k
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k = m.kinds[n]; k != nil { // which another event has made meanwhile
		return k
	}
	if len(m.kinds) >= MaxKinds {
		n = kindName{Other, Other}
	}
	if k = m.kinds[n]; k == nil {
		k = m.newKind(n)
		m.kinds[n] = k
	}
	return k
}

func (m *Metrics) newKind(n kindName) *kind {
	queue, name := label(n.queue), label(n.kind)
	k := &kind{results: make(map[idem.TaskResult]prometheus.Counter), attempts: m.taskAttempts.WithLabelValues(queue, name),
		seconds: m.taskSeconds.WithLabelValues(queue, name), delay: m.taskDelay.WithLabelValues(queue, name)}
	for _, result := range idem.TaskResults() {
		k.results[result] = m.tasks.WithLabelValues(queue, name, string(result))
	}
	return k
}

// queues are the names of those whose kinds are known.
func (m *Metrics) queues() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	seen := make(map[string]bool)
	names := []string{} // not nil, which is no array
	for n := range m.kinds {
		if !seen[n.queue] && n.queue != Other {
			seen[n.queue] = true
			names = append(names, n.queue)
		}
	}
	return names
}

// end counts the end of an attempt. Of one whose worker died nobody knows how long it took.
func (k *kind) end(e idem.Event, exemplar prometheus.Labels) {
	result, known := k.results[e.TaskResult]
	if !known {
		return // the set is closed
	}
	count(result, exemplar)
	switch e.TaskResult {
	case idem.TaskDone, idem.TaskFailed, idem.TaskCancelled:
		observe(k.attempts, float64(e.Attempt), exemplar)
	}
	if e.Elapsed > 0 {
		observe(k.seconds, e.Elapsed.Seconds(), exemplar)
		observe(k.delay, max(0, e.Delay.Seconds()), exemplar)
	}
}
