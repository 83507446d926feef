package queue_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

// wantInvalid fails unless err says what is wrong with a task, and nothing was enqueued.
func wantInvalid(t *testing.T, pool *pgxpool.Pool, what string, err error, says ...string) {
	t.Helper()
	if !errors.Is(err, queue.ErrTaskInvalid) || errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("%s: got %v, want queue.ErrTaskInvalid", what, err)
		return
	}
	for _, say := range says {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %q does not say %q", what, err, say)
		}
	}
	if len(err.Error()) > 1000 {
		t.Errorf("%s: the error has %d bytes", what, len(err.Error()))
	}
	if n := ask[int](t, pool, "select count(*) from idem.tasks"); n != 0 {
		t.Errorf("%s: %d tasks were enqueued", what, n)
	}
}

func TestT6_whatATaskCannotBe(t *testing.T) {
	pool := pgtest.New(t)
	number := func(n int) *int { return &n }
	day := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	good := queue.Task[parcel]{Key: "good"}
	for what, c := range map[string]struct {
		task queue.Task[parcel]
		says string
	}{
		"an empty key":                 {queue.Task[parcel]{}, "queue.Unkeyed"},
		"a key of 10 kB":               {queue.Task[parcel]{Key: strings.Repeat("k", 10_000)}, "10000 bytes; it must have 1 to 512"},
		"a key with a newline":         {queue.Task[parcel]{Key: "a\nb"}, "byte 2"},
		"a key with a space":           {queue.Task[parcel]{Key: "a b"}, "byte 2"},
		"a key with a NUL":             {queue.Task[parcel]{Key: "a\x00"}, "byte 2"},
		"a key that is not text":       {queue.Task[parcel]{Key: "\xff"}, "byte 1"},
		"a key that is almost Unkeyed": {queue.Task[parcel]{Key: queue.Unkeyed + "!"}, "byte 1"},
		"a payload of 10 MB":           {queue.Task[parcel]{Key: "k", Payload: parcel{Note: strings.Repeat("x", 10_000_000)}}, "keep a reference instead"},
		"text that is not UTF-8":       {queue.Task[parcel]{Key: "k", Payload: parcel{Note: "caf\xe9"}}, "not UTF-8"},
		"the year 9999":                {queue.Task[parcel]{Key: "k", RunAt: day(9999)}, "RunAt is 9999"},
		"the year 1999":                {queue.Task[parcel]{Key: "k", RunAt: day(1999)}, "RunAt is 1999"},
		"the year -290000":             {queue.Task[parcel]{Key: "k", RunAt: time.Unix(math.MinInt64/2, 0)}, "RunAt is"},
		"the end of time":              {queue.Task[parcel]{Key: "k", RunAt: time.Unix(math.MaxInt64/2, 0)}, "RunAt is"},
		"a negative delay":             {queue.Task[parcel]{Key: "k", Delay: -1}, "Delay is -1ns"},
		"a delay beyond all":           {queue.Task[parcel]{Key: "k", Delay: math.MaxInt64}, "Delay is"},
		"a delay and a time":           {queue.Task[parcel]{Key: "k", Delay: 1, RunAt: day(2030)}, "say one"},
		"priority 6":                   {queue.Task[parcel]{Key: "k", Priority: number(6)}, "Priority is 6"},
		"priority beyond int16":        {queue.Task[parcel]{Key: "k", Priority: number(1 << 16)}, "Priority is 65536"},
		"no attempts":                  {queue.Task[parcel]{Key: "k", MaxAttempts: number(0)}, "MaxAttempts is 0"},
		"1001 attempts":                {queue.Task[parcel]{Key: "k", MaxAttempts: number(1001)}, "MaxAttempts is 1001"},
	} {
		_, err := parcelSend.EnqueueMany(t.Context(), pool, good, c.task)
		wantInvalid(t, pool, what, err, c.says, "task 1 (")
	}
	everything := queue.Task[parcel]{Payload: parcel{Note: "\xff"}, Delay: -1, Priority: number(9), MaxAttempts: number(-1)}
	_, err := parcelSend.EnqueueMany(t.Context(), pool, everything)
	wantInvalid(t, pool, "all at once", err, "Key is empty", "UTF-8", "Delay", "Priority", "MaxAttempts")
	_, err = parcelSend.EnqueueMany(t.Context(), pool, make([]queue.Task[parcel], queue.MaxTasks+1)...)
	wantInvalid(t, pool, "too many", err, "at most 100000")
	large := make([]queue.Task[[]byte], queue.MaxTotal/queue.MaxPayload+1)
	for i := range large {
		large[i] = queue.Task[[]byte]{Key: queue.Unkeyed, Payload: make([]byte, queue.MaxPayload)}
	}
	_, err = queue.Define[[]byte]("raw", queue.Options{}).EnqueueMany(t.Context(), pool, large...)
	wantInvalid(t, pool, "too large together", err, "in parts")
	_, err = parcelSend.Enqueue(t.Context(), nil, "k", parcel{})
	wantInvalid(t, pool, "nowhere", err, "pool")
}

// oneWay can be written as JSON and not be read again.
type oneWay struct{}

func (oneWay) MarshalJSON() ([]byte, error)  { return []byte(`"one way"`), nil }
func (*oneWay) UnmarshalJSON(b []byte) error { return errors.New("never") }

type secret struct{ amount int }

func TestT6_payloadsThatJSONDoesNotKeep(t *testing.T) {
	pool := pgtest.New(t)
	enqueue := func(err error) func(what string, says ...string) {
		return func(what string, says ...string) {
			t.Helper()
			wantInvalid(t, pool, what, err, says...)
		}
	}
	_, err := queue.Define[chan int]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", nil)
	enqueue(err)("a channel", "chan int", "encoding/json")
	_, err = queue.Define[float64]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", math.NaN())
	enqueue(err)("no number", "NaN")
	_, err = queue.Define[secret]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", secret{1})
	enqueue(err)("unexported fields", "no exported field")
	_, err = queue.Define[oneWay]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", oneWay{})
	enqueue(err)("one way", "not be read again")
	_, err = queue.Define[json.RawMessage]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", json.RawMessage("{"))
	enqueue(err)("broken JSON", "cannot be encoded")
	_, err = queue.Define[[]byte]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", make([]byte, 10_000_000))
	enqueue(err)("10 MB of bytes", "10000000 bytes")
	_, err = queue.Define[map[string]int]("k", queue.Options{}).Enqueue(t.Context(), pool, "k", map[string]int{"\xff": 1})
	enqueue(err)("a name that is not UTF-8", "UTF-8")
	_, err = queue.Define[parcel]("k", queue.Options{}).Means(func(p parcel) any { return secret{p.Order} }).Enqueue(t.Context(), pool, "k", parcel{})
	enqueue(err)("what means nothing", "Kind.Means", "no exported field")
	_, err = queue.Define[parcel]("k", queue.Options{}).Means(func(p parcel) any { return func() {} }).Enqueue(t.Context(), pool, "k", parcel{})
	enqueue(err)("what means a function", "Kind.Means")
	_, err = queue.Define[parcel]("k", queue.Options{}).Means(func(p parcel) any { return p.Note }).Enqueue(t.Context(), pool, "k", parcel{Note: "\xff"})
	enqueue(err)("what is not UTF-8", "UTF-8")
	// An any is JSON, whatever it holds: its handler would not know.
	kind := queue.Define[any]("any", queue.Options{})
	if e, err := kind.Enqueue(t.Context(), pool, "k", []byte("raw")); err != nil || e.Outcome != queue.New {
		t.Errorf("got %+v, %v", e, err)
	}
	if got := ask[string](t, pool, "select convert_from(payload, 'UTF8') from idem.tasks"); got != `"cmF3"` {
		t.Errorf("an any is stored as %s, want base64 as JSON", got)
	}
}

func TestT6_kindsThatCannotBe(t *testing.T) {
	pool := pgtest.New(t)
	for what, c := range map[string]struct {
		name    string
		options queue.Options
		says    string
	}{
		"no name":                    {"", queue.Options{}, "the kind has 0 bytes"},
		"a name with a newline":      {"a\nb", queue.Options{}, "the kind: byte 2"},
		"a long name":                {strings.Repeat("k", 129), queue.Options{}, "1 to 128"},
		"a queue with a newline":     {"k", queue.Options{Queue: "a\nb"}, "Options.Queue: byte 2"},
		"a queue of 129 bytes":       {"k", queue.Options{Queue: strings.Repeat("q", 129)}, "Options.Queue has 129"},
		"priority -6":                {"k", queue.Options{Priority: -6}, "Options.Priority is -6"},
		"negative attempts":          {"k", queue.Options{MaxAttempts: -1}, "Options.MaxAttempts is -1"},
		"1001 attempts":              {"k", queue.Options{MaxAttempts: 1001}, "Options.MaxAttempts is 1001"},
		"a negative backoff":         {"k", queue.Options{Backoff: -1}, "Options.Backoff"},
		"a cap below the backoff":    {"k", queue.Options{Backoff: time.Hour, MaxBackoff: time.Minute}, "Options.MaxBackoff"},
		"a cap beyond all":           {"k", queue.Options{MaxBackoff: math.MaxInt64}, "Options.MaxBackoff"},
		"a negative timeout":         {"k", queue.Options{Timeout: -1}, "Options.Timeout"},
		"a timeout that counts as 0": {"k", queue.Options{Timeout: time.Microsecond}, "Options.Timeout"},
		"a timeout of a month":       {"k", queue.Options{Timeout: 30 * 24 * time.Hour}, "Options.Timeout"},
		"a lease of 1 ms":            {"k", queue.Options{Lease: time.Millisecond}, "Options.Lease"},
		"a lease of 2 days":          {"k", queue.Options{Lease: 48 * time.Hour}, "Options.Lease"},
		"a negative retention":       {"k", queue.Options{Retention: -time.Hour}, "Options.Retention"},
		"a retention of 1 ms":        {"k", queue.Options{Retention: time.Millisecond}, "Options.Retention"},
		"a retention of 20 years":    {"k", queue.Options{Retention: 20 * 365 * 24 * time.Hour}, "Options.Retention"},
	} {
		kind := queue.Define[parcel](c.name, c.options)
		_, err := kind.Enqueue(t.Context(), pool, "k", parcel{})
		wantInvalid(t, pool, what, err, c.says)
		_, err = kind.EnqueueMany(t.Context(), pool) // also of none
		wantInvalid(t, pool, what, err, c.says)
	}
	_, err := queue.Define[parcel]("", queue.Options{Priority: 9, Lease: -1}).Enqueue(t.Context(), pool, "k", parcel{})
	wantInvalid(t, pool, "all at once", err, "the kind", "Options.Priority", "Options.Lease")
}

// TestT6_theSchemaRefusesTheSame is for those who enqueue by plain SQL.
func TestT6_theSchemaRefusesTheSame(t *testing.T) {
	pool := pgtest.New(t)
	for what, values := range map[string]string{
		"queue_name":         `('a' || chr(10), 'k', 'key', '{}', 0, 10, now())`,
		"kind_name":          `('q', '', 'key', '{}', 0, 10, now())`,
		"task_key_name":      `('q', 'k', '', '{}', 0, 10, now())`,
		"payload_size":       `('q', 'k', 'key', convert_to(repeat('x', 1048577), 'UTF8'), 0, 10, now())`,
		"priority_range":     `('q', 'k', 'key', '{}', 6, 10, now())`,
		"max_attempts_range": `('q', 'k', 'key', '{}', 0, 0, now())`,
		"run_at_range":       `('q', 'k', 'key', '{}', 0, 10, '9999-01-01')`,
	} {
		_, err := pool.Exec(t.Context(), "insert into idem.tasks (queue, kind, task_key, payload, priority, max_attempts, run_at) values "+values)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want a violation of %s", err, what)
		}
	}
	most := strings.Repeat("k", queue.MaxKey)
	kind := queue.Define[[]byte](strings.Repeat("k", queue.MaxName), queue.Options{Queue: strings.Repeat("q", queue.MaxName), Priority: queue.MinPriority,
		MaxAttempts: queue.MaxAttempts, Retention: queue.MaxRetention, Timeout: queue.MaxTimeout, Lease: queue.MaxLease})
	if e, err := kind.Enqueue(t.Context(), pool, most, make([]byte, queue.MaxPayload)); err != nil || e.Outcome != queue.New {
		t.Errorf("all at the limit: got %+v, %v", e, err)
	}
}
