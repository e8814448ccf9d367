package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Guard refuses stale tokens in an SQL database. It keeps the highest token that each resource
// has seen in a table of the database that holds the resources. It does not change after New
// and is safe for concurrent use.
type Guard struct {
	sql statements
}

// Execer is a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const defaultTable = "redlock_fence"

// New makes a Guard that keeps its tokens in table, which is a name or schema.name of ASCII
// letters, digits and underscores. The name is used without quotes, so it must not be a
// reserved word. The empty name stands for redlock_fence. New does not access a database. Its
// errors name the invalid argument.
func New(d Dialect, table string) (*Guard, error) {
	statements, known := dialects[d]
	if !known {
		return nil, fmt.Errorf("fence: dialect %v is not PostgreSQL, MySQL or SQLite", d)
	}
	if table == "" {
		table = defaultTable
	}
	if err := checkTable(table); err != nil {
		return nil, err
	}
	return &Guard{sql: statements.on(table)}, nil
}

// Schema returns the statement that makes the table if it does not exist, for a migration.
//
// The table keeps a row of some 50 bytes for each resource, for ever. Without its row a resource
// forgets the tokens that it has seen, and accepts an old holder's write. A row may be deleted
// once no lock of its resource can be held any more and none will be taken.
func (g *Guard) Schema() string { return g.sql.schema }

// Create makes the table if it does not exist. Call it once, when a program is installed: of
// two calls at the same time PostgreSQL may fail one, although the table then exists. After an
// error the table exists completely or not at all.
func (g *Guard) Create(ctx context.Context, db Execer) error {
	if g.sql.schema == "" {
		return errUnmade
	}
	if db == nil {
		return errors.New("fence: db is nil")
	}
	if _, err := db.ExecContext(ctx, g.sql.schema); err != nil {
		return fmt.Errorf("fence: create table: %w", err)
	}
	return nil
}

var errUnmade = errors.New("fence: a Guard is made by New")

// Check returns nil if the resource has seen no higher token. The resource then remembers
// this token once tx commits. Call Check in the transaction that writes to the resource,
// before anything else: what tx has read before may be older than the last holder's writes.
// The same token passes as often as its holder likes. The role that runs Check needs SELECT,
// INSERT and UPDATE on the table.
//
// Until tx ends, no other transaction passes its own Check of the resource. So of the
// transactions that pass a Check and commit, each has a token at least as high as those that
// committed before. No write of an older holder comes after a write of a newer one, whatever
// happened in between, and at any isolation level. If a holder is paused after its Check, the
// Check of a newer holder waits until the old transaction ends. A write has happened when
// tx.Commit returns, not when Check does.
//
// After any error, roll tx back. The errors are:
//
//   - a *[StaleError], which is [ErrStaleToken], if the resource has seen a higher token.
//     The stored token is unchanged, even if tx is committed by mistake. But such a commit
//     would keep the other writes of tx, which the guard is there to prevent.
//   - the database's own error, wrapped. If other clients write to the resource at the same
//     time, that may be a deadlock, a lock timeout, SQLite's SQLITE_BUSY or PostgreSQL's
//     serialization failure (SQLSTATE 40001). These say nothing about the token: a new
//     transaction may try again with it.
//   - an invalid argument, which the error names: tx is nil; resource is empty, has
//     more than 255 bytes, a NUL or is not UTF-8; token is not from 1 to 2^53-1.
//     Nothing was sent.
//
// Resources are distinguished byte by byte, whatever the character set of the connection:
// "a", "A" and "a " are three resources. A PostgreSQL database with an encoding other than
// UTF-8 refuses a resource that it has no characters for.
//
// Roll tx back after an error of any later statement, too. The database may have ended the
// transaction, and the check with it, while the sql.Tx goes on. Each further statement then
// commits on its own, even after a newer holder's write. MySQL and MariaDB end the
// transaction of a deadlock's victim; SQLite ends that of a cancelled write. It is safe to
// return at each error with a deferred tx.Rollback, as in the example. To try again, begin a
// new transaction and call Check there.
//
// After a rollback, even to a savepoint older than the Check, the resource forgets this
// token, and what was written under it is gone too. A statement that commits implicitly, as
// MySQL's DDL does, ends the protection. All clients must write to a resource through the same
// primary, as the check of one server does not wait for a transaction on another.
func (g *Guard) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	if g.sql.raise == "" {
		return errUnmade
	}
	if tx == nil {
		return errors.New("fence: tx is nil")
	}
	if err := checkResource(resource); err != nil {
		return err
	}
	if err := checkToken(token); err != nil {
		return err
	}
	highest, err := g.sql.run(ctx, tx, resource, token)
	if err != nil {
		return failed(ctx, "check", resource, err)
	}
	if highest > token {
		return &StaleError{Resource: resource, Token: token, Highest: highest}
	}
	return nil
}

// This is why transactions that check and write commit in the order of their tokens.
//
// Let O and N be transactions that have passed their checks of one resource with
// tokens o < n, and that both commit. Each check locks the row of the resource until
// its transaction ends, so one of them got the lock after the other had ended. If N got
// it later, O had committed before, which is the right order. O cannot have got it
// later, as it would have found n and been refused. This holds only if a check sees
// everything that is committed when it gets the lock, and not an older snapshot. The rest
// shows that for each database.
//
// PostgreSQL, READ COMMITTED. If an INSERT meets the same key uncommitted, it waits for
// that transaction. Then ON CONFLICT DO UPDATE locks the row's newest committed version
// and computes with that, not with the version in the statement's snapshot. Two first
// inserts are the same case: the second waits on the first's index entry, and becomes an
// update, or, if the first was rolled back, an insert.
//
// PostgreSQL, REPEATABLE READ and SERIALIZABLE. If the row's newest version was committed
// after the snapshot, the statement fails with 40001 instead, even if the snapshot does
// not have the row at all. Otherwise the snapshot is up to date. READ UNCOMMITTED is READ
// COMMITTED.
//
// InnoDB, all levels. INSERT … ON DUPLICATE KEY UPDATE takes an exclusive lock on the row
// by its primary key, even if the row does not change, and computes with the newest
// version. So does SELECT … FOR UPDATE, which reads under that lock. Only a plain SELECT
// uses a snapshot. A server with innodb_snapshot_isolation on fails with error 1020 rather
// than lock a row that is newer than its snapshot. By primary key only the row is locked,
// so resources do not wait for each other. The insert comes first, because SELECT … FOR
// UPDATE of a missing row locks a gap: two transactions may both do that, and their
// inserts would deadlock. If several transactions wait for a first insert, and it is rolled
// back, one of them can still become a deadlock's victim (1213). It gets an error and does
// not commit.
//
// SQLite. A database has one writer at a time, and the check writes. If a deferred
// transaction has read before its check, and another has committed since, it fails at once
// with SQLITE_BUSY (in WAL mode, SQLITE_BUSY_SNAPSHOT), as its snapshot is not the newest. A
// transaction that begins with the check waits for at most busy_timeout. With
// _txlock=immediate every transaction waits at its beginning, where nothing is lost.
