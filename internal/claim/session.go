package claim

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is what the handler's transaction and its savepoints share: the
// connection, and what was seen of the statements that ran on it. A handler may
// leave goroutines behind that still use it; enter keeps them off the connection
// once the session is closed.
type session struct {
	claim *Claim
	conn  *pgx.Conn

	mu     sync.Mutex
	active int           // calls that are on the connection
	closed bool          // the handler has ended, was given up, or ended the transaction
	idle   chan struct{} // closed when the last call has left a closed session

	committing atomic.Bool            // a statement that commits is on its way
	committed  atomic.Bool            // the handler ended the transaction by COMMIT, or may have
	bound      atomic.Bool            // and that is written down
	exposed    atomic.Bool            // the handler has the connection itself
	id         atomic.Pointer[string] // the transaction's id, if it is exposed
	answered   atomic.Bool            // the key turned out not to be the lazy claim's

	lazy       bool               // the claim still travels with the first statement
	reading    interface{ end() } // rows that the handler has not closed
	failure    error              // the first transient failure of a statement, or a rerunnable one
	failed     bool               // a statement failed, of whatever kind
	rolledBack bool               // the handler ended it by ROLLBACK, and by nothing else
	refused    bool               // the handler called Commit or Rollback
}

// enter begins a call on the connection; exit ends it.
func (s *session) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return pgx.ErrTxClosed
	}
	s.active++
	return nil
}

func (s *session) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.active == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// close lets no further call on the connection, and returns a channel that is
// closed when none is on it any more.
func (s *session) close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.active > 0 {
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		return s.idle
	}
	idle := make(chan struct{})
	close(idle)
	return idle
}

// sends notes, before a statement is sent, whether it commits: a handler that is
// given up, or loses its connection, may never learn how it ended.
func (s *session) sends(sql string) {
	if commits(sql) {
		s.committing.Store(true)
	}
}

// mayHaveCommitted reports whether the handler has ended the transaction other
// than by a ROLLBACK that was seen, or may have. What is on its way is asked
// first, since it ends by becoming what is noted.
func (s *session) mayHaveCommitted() bool {
	return s.committing.Load() || s.committed.Load() || s.exposed.Load()
}

// saw notes how a statement ended, within its call. The command tag tells
// whether the handler ended the transaction by SQL of its own; nothing more may
// then run, since it would commit by itself. What ran on the raw connection is
// found out by its traces (see Claim.inspect).
func (s *session) saw(sql string, tag pgconn.CommandTag, err error) {
	defer s.committing.Store(false) // after what it has come to is noted
	s.fail(err)
	status := s.conn.PgConn().TxStatus()
	over := status == 'I'
	switch {
	case tag.String() == "COMMIT":
		s.committed.Store(true)
		over = true
	case (several(sql) || sqlstate.Fatal(err)) && commits(sql):
		s.committed.Store(true) // not every tag was seen
	}
	if tag.String() == "ROLLBACK" && (over || chains(sql)) {
		s.rolledBack, over = true, true
	}
	if !over || s.conn.IsClosed() {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.committed.Load() {
		s.claim.bindHere()
	}
}

// fail keeps what decides how the request ends: a failure that a further run may
// mend before any other.
func (s *session) fail(err error) {
	if err == nil {
		return
	}
	code := sqlstate.Code(err)
	s.failed = s.failed || (code != "" && code != sqlstate.InFailedTransaction)
	switch {
	case !sqlstate.Transient(err):
	case s.failure == nil, sqlstate.Rerunnable(err) && !sqlstate.Rerunnable(s.failure):
		s.failure = err
	}
}

// chains reports whether a ROLLBACK began another transaction: by AND CHAIN, and
// not because a savepoint has such a name. What it does not see, the claim's
// savepoint tells.
func chains(sql string) bool {
	words := strings.Fields(strings.ToLower(strings.TrimRight(sql, "; \t\r\n")))
	return slices.Contains(words, "and") && slices.Contains(words, "chain")
}

// several reports whether sql may be more than one statement, of which only the
// last one's tag was seen.
func several(sql string) bool { return strings.Contains(strings.TrimRight(sql, "; \t\r\n"), ";") }
