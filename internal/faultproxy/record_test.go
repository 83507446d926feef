package faultproxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func describe[M fmt.Stringer](messages []M) string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

func of(from faultproxy.Direction, steps []faultproxy.Step) (kept []faultproxy.Step) {
	for _, s := range steps {
		if s.Direction == from {
			kept = append(kept, s)
		}
	}
	return kept
}

// enumerated is the steps of marking on a connection that has its statements.
func enumerated(t *testing.T, r *rig) []faultproxy.Step {
	t.Helper()
	conn := r.connect(t)
	if err := mark(t.Context(), conn, 1); err != nil {
		t.Fatal(err)
	}
	steps, err := r.Enumerate(func() error { return mark(t.Context(), conn, 2) })
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestEnumerate_namesEveryMessageOfABatch(t *testing.T) {
	steps := enumerated(t, newRig(t))
	const insert = `"insert into public.marks values ($1)"`
	wantUp := `client Bind "begin"
client Describe "begin"
client Execute "begin"
client Bind ` + insert + `
client Describe ` + insert + `
client Execute ` + insert + `
client Bind "commit"
client Describe "commit"
client Execute "commit"
client Sync`
	wantDown := `server BindComplete "begin"
server NoData "begin"
server CommandComplete BEGIN "begin"
server BindComplete ` + insert + `
server NoData ` + insert + `
server CommandComplete INSERT 0 1 ` + insert + `
server BindComplete "commit"
server NoData "commit"
server CommandComplete COMMIT "commit"
server ReadyForQuery I`
	if got := describe(of(faultproxy.FromClient, steps)); got != wantUp {
		t.Errorf("from the client:\n%s\nwant:\n%s", got, wantUp)
	}
	if got := describe(of(faultproxy.FromServer, steps)); got != wantDown {
		t.Errorf("from the server:\n%s\nwant:\n%s", got, wantDown)
	}
}

// The messages of a batch arrive in one segment, and yet each can be the first
// that does not arrive. The server commits exactly if it was sent COMMIT.
func TestCut_betweenTheMessagesOfOneSegment(t *testing.T) {
	r := newRig(t)
	steps := of(faultproxy.FromClient, enumerated(t, r))
	r.must(t, "truncate public.marks")
	executed := false
	for i, step := range steps {
		conn := r.connect(t)
		if err := mark(t.Context(), conn, 1000+i); err != nil {
			t.Fatal(err)
		}
		before := r.marks(t)
		armed := r.Add(faultproxy.Rule{Name: step.String(), When: step.When(), Do: faultproxy.Cut()})
		if err := mark(t.Context(), conn, i); err == nil {
			t.Errorf("cut at %s: the client was told of success", step)
		}
		wantReached(t, armed)
		r.wantSessions(t, 0)
		if got := r.marks(t) == before+1; got != executed {
			t.Errorf("cut at %s: committed %t, want %t", step, got, executed)
		}
		executed = executed || commits(step.Message)
	}
	if !executed {
		t.Errorf("no step was a COMMIT:\n%s", describe(steps))
	}
}

// An error makes the server skip the rest of a batch; what follows is still known
// by its SQL.
func TestMessages_staysRightAfterErrors(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	if err := mark(t.Context(), conn, 1); err != nil {
		t.Fatal(err)
	}
	steps, err := r.Enumerate(func() error {
		if err := mark(t.Context(), conn, 1); err == nil {
			return errors.New("the same mark twice")
		}
		if _, err := conn.Exec(t.Context(), "rollback; select 7; nonsense"); err == nil {
			return errors.New("nonsense succeeded")
		}
		if _, err := conn.Exec(t.Context(), "rollback; select 7"); err != nil {
			return err
		}
		return conn.PgConn().ExecParams(t.Context(), "select 8", nil, nil, nil, nil).Read().Err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := describe(of(faultproxy.FromServer, steps))
	const insert = `"insert into public.marks values ($1)"`
	want := `server BindComplete "begin"
server NoData "begin"
server CommandComplete BEGIN "begin"
server BindComplete ` + insert + `
server NoData ` + insert + `
server ErrorResponse 23505 ` + insert + `
server ReadyForQuery E
server ErrorResponse 42601 "rollback; select 7; nonsense"
server ReadyForQuery E "rollback; select 7; nonsense"
server CommandComplete ROLLBACK "rollback; select 7"
server RowDescription "rollback; select 7"
server DataRow "rollback; select 7"
server CommandComplete SELECT 1 "rollback; select 7"
server ReadyForQuery I "rollback; select 7"
server ParseComplete "select 8"
server BindComplete "select 8"
server RowDescription "select 8"
server DataRow "select 8"
server CommandComplete SELECT 1 "select 8"
server ReadyForQuery I`
	if got != want {
		t.Errorf("from the server:\n%s\nwant:\n%s", got, want)
	}
}

// guarded is one request's transaction as the claim sends it.
func guarded(ctx context.Context, pool *pgxpool.Pool, key string) error {
	print := idem.Fingerprint{Version: 1, Sum: make([]byte, 32)}
	c, err := claim.Begin(ctx, pool, claim.Intent{Scope: "s", Key: key, Fingerprint: print, Limit: 5 * time.Second,
		Same: func(idem.Fingerprint) bool { return true }, TTL: time.Hour})
	if err != nil {
		return err
	}
	if c.Outcome != claim.Fresh {
		return fmt.Errorf("outcome %d", c.Outcome)
	}
	if _, err := c.Tx().Exec(ctx, "insert into public.marks select coalesce(max(n), 0) + $1 from public.marks", 1); err != nil {
		return err
	}
	if r := c.Commit(ctx, idem.Answer{Status: 201, Body: []byte("made")}, false); r.Ending != claim.Remembered {
		return fmt.Errorf("ending %d: %w", r.Ending, r.Err)
	}
	return nil
}

// Every step of a guarded request is found again in the next one.
func TestEnumerate_everyStepOfARequestIsReachedAgain(t *testing.T) {
	r := newRig(t)
	pool := pgtest.Pool(t, r.URL()+"&pool_max_conns=1")
	if err := guarded(t.Context(), pool, "warm"); err != nil {
		t.Fatal(err)
	}
	steps, err := r.Enumerate(func() error { return guarded(t.Context(), pool, "enumerated") })
	if err != nil {
		t.Fatal(err)
	}
	executes := ""
	for _, s := range steps {
		if s.Type == "Execute" && s.Direction == faultproxy.FromClient {
			executes += strings.Join(strings.Fields(s.SQL)[:1], "") + " "
		}
	}
	if want := "begin select select savepoint insert release insert commit "; executes != want {
		t.Errorf("the request executes %q, want %q", executes, want)
	}
	for i, step := range steps {
		armed := r.Add(faultproxy.Rule{Name: step.String(), When: step.When()})
		if err := guarded(t.Context(), pool, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		wantReached(t, armed)
	}
}

func TestEnumerate_failsWithItsRunAndBeyondItsMemory(t *testing.T) {
	r := newRig(t)
	failure := errors.New("the run failed")
	if _, err := r.Enumerate(func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want the run's error", err)
	}
	conn := r.connect(t)
	_, err := r.Enumerate(func() error {
		_, err := conn.Exec(t.Context(), "select n from generate_series(1, 25000) n")
		return err
	})
	if err == nil {
		t.Error("25,000 messages were all remembered")
	}
	if got := len(r.Messages()); got != 10_000 {
		t.Errorf("%d messages are remembered, want 10,000", got)
	}
	steps, err := r.Enumerate(func() error { return conn.Ping(t.Context()) })
	if err != nil || len(steps) == 0 {
		t.Errorf("after that: %d steps, %v", len(steps), err)
	}
}

// Values are not in the record: it may be printed.
func TestMessages_holdNoValues(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	var got string
	if err := conn.QueryRow(t.Context(), "select $1::text", pgx.QueryExecModeExec, "a secret").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprintf("%+v", r.Messages()); strings.Contains(all, "a secret") {
		t.Error("the record holds a parameter or a row")
	}
}
