package faultproxy

import (
	"fmt"
	"sync"
)

// maxRecord bounds the messages that are remembered. A guarded request has about
// sixty.
const maxRecord = 10_000

// record is what the proxy saw, and the rules that look at it.
type record struct {
	mu       sync.Mutex
	messages []Message // the last ones; up to twice maxRecord
	total    int
	rules    []*Armed
}

func (r *record) add(a *Armed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.rules[:0]
	for _, old := range r.rules {
		if !old.over() {
			kept = append(kept, old)
		}
	}
	clear(r.rules[len(kept):])
	r.rules = append(kept, a)
}

// see remembers m and returns the rule that acts at it, or nil.
func (r *record) see(m Message) *Armed {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.messages) == 2*maxRecord {
		r.messages = r.messages[:copy(r.messages, r.messages[maxRecord:])]
	}
	r.messages = append(r.messages, m)
	r.total++
	var acting *Armed
	for _, a := range r.rules {
		// Every rule looks at it, since some count.
		if a.chooses(m) && acting == nil {
			acting = a
			a.take()
		}
	}
	return acting
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// since returns the messages after the first n. It fails if they are too many.
func (r *record) since(n int) ([]Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.total - n
	if count > min(maxRecord, len(r.messages)) {
		return nil, fmt.Errorf("faultproxy: %d messages, of which %d can be remembered", count, maxRecord)
	}
	return append([]Message(nil), r.messages[len(r.messages)-count:]...), nil
}

func (r *record) last() []Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Message(nil), r.messages[max(0, len(r.messages)-maxRecord):]...)
}

// Messages returns what the proxy saw, oldest first, the last 10,000 messages at
// most. A message is listed before it is forwarded or anything is done at it.
func (p *Postgres) Messages() []Message { return p.record.last() }

// Step is a message by its place in a run that can be repeated, whatever
// connection it comes on then.
type Step struct {
	Message
	// Nth counts, from 1, the messages of the run that are alike: of the same
	// direction, type, SQL and tag.
	Nth int
}

// String describes the step in one line.
func (s Step) String() string {
	if s.Nth == 1 {
		return s.Message.String()
	}
	return fmt.Sprintf("%s #%d", s.Message, s.Nth)
}

// When matches the step in another run, which begins when the rule is added. It
// is good for one rule.
func (s Step) When() func(Message) bool {
	return Nth(s.Nth, func(m Message) bool { return alike(m) == alike(s.Message) })
}

// alike is what two runs of the same have in common.
func alike(m Message) Message {
	return Message{Direction: m.Direction, Type: m.Type, SQL: m.SQL, Tag: m.Tag}
}

// Enumerate returns the steps of run, so that each fault can be tried at each of
// them. Nothing else should use the proxy meanwhile. Whether statements are
// prepared already changes the steps: warm the connection up alike before every
// run. It fails if run does.
func (p *Postgres) Enumerate(run func() error) ([]Step, error) {
	before := p.record.count()
	if err := run(); err != nil {
		return nil, err
	}
	messages, err := p.record.since(before)
	if err != nil {
		return nil, err
	}
	nth := map[Message]int{}
	steps := make([]Step, len(messages))
	for i, m := range messages {
		nth[alike(m)]++
		steps[i] = Step{Message: m, Nth: nth[alike(m)]}
	}
	return steps, nil
}
