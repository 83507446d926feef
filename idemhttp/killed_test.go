package idemhttp_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// killedAt sends one request to a child and kills the child once it has reached
// point; before says what must hold at that moment. The client gets no answer.
func killedAt(t *testing.T, url, point string, before func(), env ...string) {
	t.Helper()
	c := startChild(t, url, point, env...)
	lost := c.begin(post("/orders", "k", body))
	c.await("reached ")
	before()
	c.kill()
	if got := <-lost; got.err == nil {
		t.Fatalf("the killed server answered %d %s", got.status, got.body)
	}
}

func TestQ4_killedBeforeCommitLeavesNothing(t *testing.T) {
	url := pgtest.NewURL(t)
	r := rigOn(t, pgtest.Pool(t, url))
	killedAt(t, url, pointInserted, func() {
		r.wantRows("select count(*) from orders", 0)
	})
	r.wantRows("select count(*) from orders", 0)
	r.wantRows("select count(*) from idem.idempotency_keys", 0)

	second := startChild(t, url, pointNone)
	retry := second.send(post("/orders", "k", body))
	r.want(retry, 201, "")
	if retry.replayed() {
		t.Error("the retry says that it is a replay; nothing was there to replay")
	}
	again := second.send(post("/orders", "k", body))
	if again.body != retry.body || !again.replayed() {
		t.Errorf("the repeat got %d %q, replayed %v; want the retry's %q", again.status, again.body, again.replayed(), retry.body)
	}
	r.wantRows("select count(*) from orders", 1)
}

func TestQ5_killedAfterCommitKeepsTheAnswer(t *testing.T) {
	killedAfterCommit(t)
}

// killedAfterCommit kills a child of an environment before its answer is sent.
func killedAfterCommit(t *testing.T, env ...string) {
	t.Helper()
	url := pgtest.NewURL(t)
	r := rigOn(t, pgtest.Pool(t, url))
	var stored []byte
	killedAt(t, url, pointAnswer, func() {
		r.wantRows("select count(*) from orders", 1)
		err := r.pool.QueryRow(t.Context(), "select response_body from idem.idempotency_keys where scope = 'guest' and key = 'k'").Scan(&stored)
		if err != nil {
			t.Fatalf("the answer is not stored before it is sent: %v", err)
		}
	}, env...)
	r.collects(url, string(stored), env...)
}

// A client that dies while the server works on its COMMIT learns nothing; the
// transaction goes on without it.
func TestQ5_killedWithinCommitIsLearntByTheRetry(t *testing.T) {
	url := pgtest.NewURL(t)
	r := rigOn(t, pgtest.Pool(t, url))
	release := r.killedWithinCommit(url)
	release()
	r.collects(url, `{"id":1,"customer_id":123,"amount":1500}`+"\n")
}

// killedWithinCommit kills a child of an environment while the server works on its
// COMMIT, until release.
func (r *rig) killedWithinCommit(url string, env ...string) (release func()) {
	r.t.Helper()
	release = r.holdCommits()
	c := startChild(r.t, url, pointNone, env...)
	lost := c.begin(post("/orders", "k", body))
	r.eventuallyBlocked(1)
	c.kill()
	if got := <-lost; got.err == nil {
		r.t.Fatalf("the killed server answered %d %s", got.status, got.body)
	}
	r.wantRows("select count(*) from orders", 0)
	return release
}

// collects retries on a new server and wants the answer of the first.
func (r *rig) collects(url, want string, env ...string) {
	r.t.Helper()
	retry := startChild(r.t, url, pointNone, env...).send(post("/orders", "k", body))
	r.want(retry, 201, "")
	if retry.body != want || !retry.replayed() {
		r.t.Errorf("the retry got %q, replayed %v; want %q as a replay", retry.body, retry.replayed(), want)
	}
	r.wantRows("select count(*) from orders", 1)
}

// holdCommits makes every COMMIT of an order wait on the server, in a deferred
// trigger, until release.
func (r *rig) holdCommits() (release func()) {
	r.t.Helper()
	ctx := context.Background()
	_, err := r.pool.Exec(ctx, `
		create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(42); return null; end $$;
		create constraint trigger hold after insert on orders deferrable initially deferred for each row execute function hold()`)
	if err != nil {
		r.t.Fatal(err)
	}
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = tx.Rollback(ctx) })
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(42)"); err != nil {
		r.t.Fatal(err)
	}
	return func() { _ = tx.Rollback(ctx) }
}

// eventuallyBlocked waits until n sessions of the test's database wait for a
// lock.
func (r *rig) eventuallyBlocked(n int) {
	r.t.Helper()
	eventually(r.t, "sessions that wait for a lock", func() bool {
		var got int
		err := r.pool.QueryRow(context.Background(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&got)
		return err == nil && got == n
	})
}
