package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestPostgres_passesEveryExecMode(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}
	for _, mode := range modes {
		for i := range 3 {
			var got string
			err := conn.QueryRow(t.Context(), "select 'row ' || $1::int", mode, i).Scan(&got)
			if want := fmt.Sprintf("row %d", i); err != nil || got != want {
				t.Errorf("%v: %q, %v; want %q", mode, got, err, want)
			}
		}
	}
}

func TestPostgres_passesPreparedStatementsAndErrors(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	if _, err := conn.Prepare(t.Context(), "ins", "insert into public.marks values ($1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ins", 1); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "ins", 1)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "23505" {
		t.Errorf("the second insert: %v, want a unique violation", err)
	}
	if err := conn.Deallocate(t.Context(), "ins"); err != nil {
		t.Error(err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	r.wantMarks(t, 1)
}

func TestPostgres_passesBatchesBothWays(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	b := &pgx.Batch{}
	for i := range 500 {
		b.Queue("insert into public.marks values ($1) returning n", i)
	}
	results := conn.SendBatch(t.Context(), b)
	for i := range 500 {
		var got int
		if err := results.QueryRow().Scan(&got); err != nil || got != i {
			t.Fatalf("insert %d returned %d, %v", i, got, err)
		}
	}
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	r.wantMarks(t, 500)
}

func TestPostgres_passesCopyInAndOut(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	const rows = 50_000
	source := pgx.CopyFromSlice(rows, func(i int) ([]any, error) { return []any{int64(i)}, nil })
	n, err := conn.CopyFrom(t.Context(), pgx.Identifier{"public", "marks"}, []string{"n"}, source)
	if err != nil || n != rows {
		t.Fatalf("copied in %d, %v; want %d", n, err, rows)
	}
	var out bytes.Buffer
	tag, err := conn.PgConn().CopyTo(t.Context(), &out, "copy public.marks to stdout")
	if err != nil || tag.RowsAffected() != rows || bytes.Count(out.Bytes(), []byte("\n")) != rows {
		t.Fatalf("copied out %v, %d lines, %v; want %d", tag, bytes.Count(out.Bytes(), []byte("\n")), err, rows)
	}
	broken := pgx.CopyFromSlice(2, func(i int) ([]any, error) { return nil, errors.New("no more") })
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"public", "marks"}, []string{"n"}, broken); err == nil {
		t.Error("a COPY whose source fails succeeded")
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("after a failed COPY: %v", err)
	}
}

func TestPostgres_passesNotificationsWhileNobodyAsks(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	if _, err := conn.Exec(t.Context(), "listen news"); err != nil {
		t.Fatal(err)
	}
	r.must(t, "select pg_notify('news', 'it works')")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := conn.WaitForNotification(ctx)
	if err != nil || got.Payload != "it works" {
		t.Errorf("notification %+v, %v", got, err)
	}
}

// A value larger than what is held of a message flows through in pieces.
func TestPostgres_passesLargeValuesBothWays(t *testing.T) {
	r := newRig(t)
	conn := r.connect(t)
	for _, size := range []int{0, 1, 64<<10 - 20, 64 << 10, 64<<10 + 1, 3 << 20} {
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		var got []byte
		if err := conn.QueryRow(t.Context(), "select $1::bytea", want).Scan(&got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
	}
	var rows, total int
	err := conn.QueryRow(t.Context(), "select count(*), sum(length(x)) from (select repeat('x', 1000) as x from generate_series(1, 5000)) s").Scan(&rows, &total)
	if err != nil || rows != 5000 || total != 5_000_000 {
		t.Errorf("%d rows, %d bytes, %v", rows, total, err)
	}
}

func TestPostgres_passesCancelRequests(t *testing.T) {
	r := newBareRig(t)
	conn := r.connect(t)
	cancels := r.Add(faultproxy.Rule{Name: "cancel", When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1})
	slept := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select pg_sleep(60)")
		slept <- err
	}()
	// A cancel that comes before its statement is lost, so it is sent again.
	var err error
	eventually(t, func() bool {
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err = <-slept:
			return true
		default:
			return false
		}
	}, func() { t.Fatal("the statement was not cancelled") })
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "57014" {
		t.Errorf("the sleep ended with %v, want a cancel", err)
	}
	if cancels.Visits() == 0 {
		t.Error("no cancel was seen")
	}
	// The last one may have come after the statement, and meet this.
	eventually(t, func() bool { return conn.Ping(t.Context()) == nil }, func() { t.Error("the session is lost") })
}

func TestPostgres_passesScramAndItsRefusal(t *testing.T) {
	r := newRig(t)
	r.connect(t)
	types := ""
	for _, m := range r.Messages() {
		types += m.Type + " "
	}
	const want = "StartupMessage AuthenticationSASL SASLInitialResponse AuthenticationSASLContinue SASLResponse AuthenticationSASLFinal AuthenticationOk "
	if !strings.HasPrefix(types, want) {
		t.Errorf("the connection began with %s, want %s", types, want)
	}
	wrong, err := url.Parse(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword(wrong.User.Username(), "wrong")
	_, err = pgx.Connect(t.Context(), wrong.String())
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("with a wrong password: %v, want 28P01", err)
	}
}

// A client that asks for TLS first is told no, and goes on without.
func TestPostgres_answersWishesForEncryption(t *testing.T) {
	r := newRig(t)
	conn, err := pgx.Connect(t.Context(), strings.Replace(r.URL(), "sslmode=disable", "sslmode=prefer", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if conn, err := pgx.Connect(t.Context(), strings.Replace(r.URL(), "sslmode=disable", "sslmode=require", 1)); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a client that insists on TLS was served")
	}
}

func TestPostgres_servesManyConnectionsAtOnce(t *testing.T) {
	r := newRig(t)
	pool := pgtest.Pool(t, r.URL()+"&pool_max_conns=30")
	var running sync.WaitGroup
	for worker := range 30 {
		running.Go(func() {
			for i := range 20 {
				if _, err := pool.Exec(context.Background(), "insert into public.marks values ($1)", worker*100+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	r.wantMarks(t, 600)
}
