package storm

import (
	"encoding/json"
	"net/http"
	"sync"
)

// verdict is what a first answer is worth.
type verdict int

const (
	wrong   verdict = iota // not what this intent may be told
	done                   // carried out
	refused                // a definite refusal that this intent may meet
)

// record is what clients were told at one path. Safe for concurrent use.
type record struct {
	path    string
	intents []intent
	judge   func(intent, answer) (v verdict, id int64)
	// bodyOf makes the body of a send that has none: it is not there as long as what it
	// follows has no answer.
	bodyOf func(send) (body string, ok bool)

	mu    sync.Mutex
	c     Column
	first []answer // of each intent, once there is one
	fresh []int    // answers of each intent that were not replays
	won   int      // intents that were carried out
	lost  int      // intents that were refused
	made  []int64  // what each intent that was carried out has made
	ids   map[int64]bool
}

func newRecord(path string, intents []intent, judge func(intent, answer) (verdict, int64)) *record {
	return &record{path: path, intents: intents, judge: judge,
		c:     Column{Path: path, Intents: len(intents), Answers: map[int]int{}},
		first: make([]answer, len(intents)), fresh: make([]int, len(intents)),
		made: make([]int64, len(intents)), ids: map[int64]bool{}}
}

// body is a send's body, if it is known by now.
func (rec *record) body(s send) (string, bool) {
	if s.body != "" || rec.bodyOf == nil {
		return s.body, true
	}
	return rec.bodyOf(s)
}

// note judges one answer. It reports whether it was definite; if it was not, the
// outcome is open.
func (rec *record) note(s send, a answer) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	c := &rec.c
	if !a.Definite {
		if s.hangUp {
			c.HungUp++
		}
		return false
	}
	c.Answers[a.Status]++
	if a.Replayed {
		c.Replays++
	}
	if s.altered {
		if a.Code == "key-mismatch" {
			c.AlteredRefused++
		}
		return true
	}
	rec.compare(s.intent, a)
	return true
}

// answered reports whether an intent has its answer.
func (rec *record) answered(intent int) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.first[intent].Status != 0
}

// id is what an intent has made, once it is known.
func (rec *record) id(intent int) (id int64, made bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	id = rec.made[intent]
	return id, id != 0
}

// open are the intents that have no answer and can be asked for by now.
func (rec *record) open() (jobs []*job) {
	for i := range rec.intents {
		s := send{intent: i}
		if body, ok := rec.body(s); ok && !rec.answered(i) {
			s.body = body
			jobs = append(jobs, &job{send: s, rec: rec})
		}
	}
	return jobs
}

// tried counts a send of the plan.
func (rec *record) tried(s send) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.c.Sends++
	if s.altered {
		rec.c.Altered++
	}
}

// gaveUp counts a send of the plan that was left without a definite answer, or
// one that was asked again at the end and still has none.
func (rec *record) gaveUp(forGood bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if forGood {
		rec.c.Undecided++
	} else {
		rec.c.GaveUp++
	}
}

// compare holds an answer against the first one of its intent.
func (rec *record) compare(i int, a answer) {
	c := &rec.c
	if !a.Replayed {
		if rec.fresh[i]++; rec.fresh[i] == 2 {
			c.RanTwice++
		}
	}
	if rec.first[i].Status != 0 {
		if !rec.first[i].same(a) {
			c.Differing++
		}
		return
	}
	rec.first[i] = a
	v, id := rec.judge(rec.intents[i], a)
	switch {
	case v == done && !rec.ids[id]:
		rec.won++
		rec.ids[id], rec.made[i] = true, id
	case v == refused:
		rec.lost++
	default:
		c.Wrong++
	}
}

// races is what was counted of bookings. Call it when no request is under way.
func (rec *record) races() Races {
	return Races{Column: rec.c, Slots: len(rec.intents) / racers, Won: rec.won, Lost: rec.lost}
}

// judgeOrder: every order is made, for who asked and as asked.
func judgeOrder(in intent, a answer) (verdict, int64) {
	var o struct {
		ID         int64 `json:"id"`
		CustomerID int64 `json:"customer_id"`
		Amount     int64 `json:"amount"`
	}
	if a.Status != http.StatusCreated || json.Unmarshal([]byte(a.Body), &o) != nil ||
		o.CustomerID != in.customer || o.Amount != in.amount {
		return wrong, 0
	}
	return done, o.ID
}

// judgeBooking: a slot is booked for who asked, or taken.
func judgeBooking(in intent, a answer) (verdict, int64) {
	if a.Status == http.StatusConflict && a.Code == "slot-taken" {
		return refused, 0
	}
	var b struct {
		ID         int64  `json:"id"`
		CustomerID int64  `json:"customer_id"`
		Slot       string `json:"slot"`
	}
	if a.Status != http.StatusCreated || json.Unmarshal([]byte(a.Body), &b) != nil ||
		b.CustomerID != in.customer || b.Slot != in.slot {
		return wrong, 0
	}
	return done, b.ID
}
