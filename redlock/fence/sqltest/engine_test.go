package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/fence"
)

// engine is a database with the statements that the tests use on it.
type engine struct {
	dialect fence.Dialect
	open    func(t *testing.T, options string) *sql.DB
	data    string               // makes a table of writes, %s
	insert  string               // writes a token to a resource
	read    string               // reads a resource's tokens in the order of their commits
	stored  string               // reads the token that table %s has stored
	id      string               // reads the session's id; empty if waits is not implemented
	again   func(err error) bool // reports whether the database asks for another try

	// charsets are driver options with which the server takes a connection's text for a
	// character set other than UTF-8, or computes with it in another character set.
	charsets []string

	// waits reports whether the session with that id waits for a lock.
	waits func(ctx context.Context, db *sql.DB, id int64) (bool, error)
}

// setting is a way to use an engine.
type setting struct {
	name    string
	engine  *engine
	options string // for the driver
	level   sql.IsolationLevel
	orderly bool // the database never asks one of two transactions to try again
}

// settings are all settings in which a guard makes the same promises.
var settings = []setting{
	{"postgres/read committed", &postgres, "", sql.LevelReadCommitted, true},
	{"postgres/repeatable read", &postgres, "", sql.LevelRepeatableRead, false},
	{"postgres/serializable", &postgres, "", sql.LevelSerializable, false},
	{"postgres/simple protocol", &postgres, "default_query_exec_mode=simple_protocol", sql.LevelDefault, true},
	{"mariadb/read uncommitted", &mariadb, "", sql.LevelReadUncommitted, true},
	{"mariadb/read committed", &mariadb, "", sql.LevelReadCommitted, true},
	{"mariadb/repeatable read", &mariadb, "", sql.LevelRepeatableRead, true},
	{"mariadb/serializable", &mariadb, "", sql.LevelSerializable, true},
	{"mariadb/snapshot isolation", &mariadb, "innodb_snapshot_isolation=1", sql.LevelRepeatableRead, false},
	{"mariadb/found rows", &mariadb, "clientFoundRows=true&interpolateParams=true", sql.LevelDefault, true},
	{"sqlite/wal", &sqlite, "_pragma=journal_mode(wal)", sql.LevelDefault, false},
	{"sqlite/wal immediate", &sqlite, "_pragma=journal_mode(wal)&_txlock=immediate", sql.LevelDefault, false},
	{"sqlite/rollback journal", &sqlite, "_pragma=journal_mode(delete)", sql.LevelDefault, false},
	{"sqlite/rollback journal immediate", &sqlite, "_pragma=journal_mode(delete)&_txlock=immediate", sql.LevelDefault, false},
}

// store has the tables of one test on one setting.
type store struct {
	*testing.T
	setting
	ctx         context.Context // ends if something hangs
	db          *sql.DB
	guard       *fence.Guard
	fence, data string // names of tables
}

var tables atomic.Int64

// each runs a test on each setting.
func each(t *testing.T, test func(s *store)) { run(t, settings, test) }

// eachThatWaits runs a test on each setting except SQLite's, where a transaction that meets
// another fails at once and does not wait for it.
func eachThatWaits(t *testing.T, test func(s *store)) {
	run(t, slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.engine == &sqlite }), test)
}

func run(t *testing.T, settings []setting, test func(s *store)) {
	t.Parallel()
	for _, setting := range settings {
		t.Run(setting.name, func(t *testing.T) {
			t.Parallel()
			test(newStore(t, setting))
		})
	}
}

func newStore(t *testing.T, setting setting) *store {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the test hangs"))
	t.Cleanup(cancel)
	n := tables.Add(1)
	s := &store{
		T: t, setting: setting, ctx: ctx, db: setting.engine.open(t, setting.options),
		fence: fmt.Sprintf("fence_%d", n), data: fmt.Sprintf("data_%d", n),
	}
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	s.db.SetMaxOpenConns(8) // the servers have 60 or more for the tests that run at once
	s.guard = s.newGuard(s.fence)
	s.exec(fmt.Sprintf(setting.engine.data, s.data))
	s.exec("CREATE TABLE side_" + s.data + " (n INT)")
	return s
}

func (s *store) newGuard(table string) *fence.Guard {
	s.Helper()
	g, err := fence.New(s.engine.dialect, table)
	require.NoError(s, err)
	require.NoError(s, g.Create(s.ctx, s.db))
	require.NoError(s, g.Create(s.ctx, s.db), "again")
	return g
}

func (s *store) exec(query string) {
	s.Helper()
	_, err := s.db.ExecContext(s.ctx, query)
	require.NoError(s, err)
}

// holder is a client that writes under one token in one transaction.
type holder struct {
	s     *store
	conn  *sql.Conn
	id    int64 // the session's id; 0 if the engine has none
	tx    *sql.Tx
	token int64
	name  string
}

// holder begins a transaction for a write to the resource. It does not call Check.
func (s *store) holder(resource string, token int64) (h *holder, err error) {
	h = &holder{s: s, token: token, name: resource}
	if h.conn, err = s.db.Conn(s.ctx); err != nil {
		return nil, err
	}
	// Read the id before the transaction, whose first statement must be the test's own.
	if s.engine.id != "" {
		err = h.conn.QueryRowContext(s.ctx, s.engine.id).Scan(&h.id)
	}
	if err == nil {
		h.tx, err = h.conn.BeginTx(s.ctx, &sql.TxOptions{Isolation: s.level})
	}
	if err != nil {
		_ = h.conn.Close()
		return nil, err
	}
	return h, nil
}

// begin is like holder, but fails the test if the transaction cannot begin.
func (s *store) begin(resource string, token int64) *holder {
	s.Helper()
	h, err := s.holder(resource, token)
	require.NoError(s, err)
	return h
}

// look reads without touching a resource. At isolation levels with snapshots it takes one.
func (h *holder) look() error {
	var n int
	return h.tx.QueryRowContext(h.s.ctx, "SELECT count(*) FROM side_"+h.s.data).Scan(&n)
}

func (h *holder) check() error { return h.s.guard.Check(h.s.ctx, h.tx, h.name, h.token) }

func (h *holder) write() error {
	_, err := h.tx.ExecContext(h.s.ctx, fmt.Sprintf(h.s.engine.insert, h.s.data), h.name, h.token)
	return err
}

func (h *holder) commit() error {
	defer h.conn.Close()
	return h.tx.Commit()
}

func (h *holder) rollback() {
	defer h.conn.Close()
	_ = h.tx.Rollback() // fails if the driver has broken the connection, which rolls back too
}

// finish completes a transaction whose check returned err: it writes and commits, or rolls back
// at the first error.
func (h *holder) finish(err error) error {
	if err == nil {
		err = h.write()
	}
	if err != nil {
		h.rollback()
		return err
	}
	return h.commit()
}

// try checks and writes in a new transaction, and repeats that while the database asks for
// another try.
func (s *store) try(resource string, token int64) error {
	for {
		h, err := s.holder(resource, token)
		if err == nil {
			err = h.finish(h.check())
		}
		if err == nil || !s.engine.again(err) || s.ctx.Err() != nil {
			return err
		}
	}
}

// written returns the tokens of a resource's writes in the order of their commits.
func (s *store) written(resource string) (tokens []int64) {
	s.Helper()
	rows, err := s.db.QueryContext(s.ctx, fmt.Sprintf(s.engine.read, s.data), resource)
	require.NoError(s, err)
	defer rows.Close()
	for rows.Next() {
		var token int64
		require.NoError(s, rows.Scan(&token))
		tokens = append(tokens, token)
	}
	require.NoError(s, rows.Err())
	return tokens
}

// stored returns the token that a resource remembers, or 0 if there is none.
func (s *store) stored(resource string) (token int64) {
	s.Helper()
	err := s.db.QueryRowContext(s.ctx, fmt.Sprintf(s.engine.stored, s.fence), resource).Scan(&token)
	if errors.Is(err, sql.ErrNoRows) {
		return 0
	}
	require.NoError(s, err)
	return token
}

// awaitWait waits until the holder's session waits for a lock.
func (s *store) awaitWait(h *holder) {
	s.Helper()
	require.NoError(s, poll(s.ctx, func() error {
		waits, err := s.engine.waits(s.ctx, s.db, h.id)
		if err != nil {
			return final{err}
		}
		if !waits {
			return errors.New("the holder never waits for a lock")
		}
		return nil
	}))
}
