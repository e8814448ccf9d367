package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Guard keeps the highest token that each resource has seen in a table of the
// database that holds the resources. It does not change after New and is safe for
// concurrent use.
type Guard struct {
	sql statements
}

// Execer is a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const defaultTable = "redlock_fence"

// New makes a Guard that keeps its tokens in table: a name or schema.name of ASCII
// letters, digits and underscores, which is used without quotes and so must not be a
// reserved word. The empty name stands for redlock_fence. New touches no database;
// its errors name the argument.
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

// Schema is the statement that makes the table if it does not exist, for a
// migration. A row stays for ever, some 50 bytes for each resource: with its row a
// resource forgets what it has seen, and takes an old holder's write. A row may be
// deleted once no lock of its resource can be held any more and none will be taken.
func (g *Guard) Schema() string { return g.sql.schema }

// Create makes the table if it does not exist. It is for once, when a program is
// installed: of two at the same time PostgreSQL may fail one, to which the table's
// existence is then news. On an error there is a table or none, never half of one.
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

// Check is to be called in the transaction that writes to the resource, first of all
// there: what tx has read before may be older than the last holder's writes. It passes
// if the resource has seen no higher token, and makes it remember this one, once tx
// commits. The same token passes as often as its holder likes. The role that runs it
// needs SELECT, INSERT and UPDATE on the table.
//
// Until tx ends no other transaction gets past its own Check of the resource. So of
// the transactions that have passed a Check and commit, each has a token not below
// that of any that committed before: no write of an older holder comes after one of
// a newer, whatever happened in between and at whatever isolation level. A holder
// that had checked before it was paused makes the newer one wait, with its Check,
// for the old transaction's end; tx.Commit, not Check, is where a write has happened.
//
// After any error tx must be rolled back:
//
//   - a *[StaleError], which is [ErrStaleToken], if the resource has seen a higher
//     token. The stored one is as it was, also if tx is committed by mistake; what
//     else tx has written would then be what the fence was for.
//   - the database's own error, wrapped. Where others write to the resource at the
//     same time that may be a deadlock, a lock that was not had in time, SQLite's
//     SQLITE_BUSY or PostgreSQL's serialization failure (SQLSTATE 40001): a new
//     transaction may try again with the same token. What these have told about the
//     token is nothing.
//   - an invalid argument, which the error names: tx is nil; resource is empty, has
//     more than 255 bytes, a NUL or is not UTF-8; token is not from 1 to 2^53-1.
//     Nothing was sent. Resources are told apart byte by byte, whatever the character
//     set of the connection: "a", "A" and "a " are three. A PostgreSQL database in
//     another encoding than UTF-8 refuses a resource that it has no characters for.
//
// After an error of any later statement tx must be rolled back too. The database may
// have ended the transaction, and the check with it, while the sql.Tx goes on: each
// further statement then commits on its own, also after a newer holder's write. MySQL
// and MariaDB end the transaction of a deadlock's victim, SQLite that of a write which is
// cancelled. Returning at each error with a deferred tx.Rollback, as in the example, is
// safe. To try again, begin a new transaction and Check there.
//
// A rollback, also one to a savepoint that is older than the Check, makes the
// resource forget this token; what was written under it goes with it. A statement that
// commits implicitly, as MySQL's DDL does, ends the protection. All that write to a
// resource do so through one primary: nobody waits there for a lock that another
// server has given.
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

// Why check and write in one transaction are in the order of the tokens.
//
// Let O and N be transactions that have passed their checks of one resource with
// tokens o < n, and that both commit. Each check locks the row of the resource until
// its transaction's end, so that one of them got the lock after the other had ended.
// If that was N, then O had committed before it, which is the right order. It cannot
// have been O, provided that who gets the lock is judged by what is committed then
// and not by an older snapshot: O would have found n and been refused. The rest is
// that proviso.
//
// PostgreSQL, READ COMMITTED. An INSERT that meets the same key uncommitted waits
// for that transaction; then ON CONFLICT DO UPDATE locks the row's newest committed
// version and computes with that, not with the version in the statement's snapshot.
// Two first inserts are the same case: the second waits on the first's index entry,
// and becomes an update, or, if the first was rolled back, an insert.
//
// PostgreSQL, REPEATABLE READ and SERIALIZABLE. If the row's newest version was
// committed after the snapshot, the statement fails with 40001 instead, also for a
// row that the snapshot does not have at all. Otherwise the snapshot is up to date.
// READ UNCOMMITTED is READ COMMITTED.
//
// InnoDB, all levels. INSERT … ON DUPLICATE KEY UPDATE takes an exclusive lock on the
// row by its primary key, also if the row then stays as it is, and computes with the
// newest version; so does SELECT … FOR UPDATE, which reads under that lock. Snapshots
// are for plain SELECT only, and a server that has innodb_snapshot_isolation on fails
// with error 1020 rather than lock a row that is newer than its snapshot. By primary
// key the lock is on the row alone, so that resources do not wait for each other. It
// is the insert that comes first: SELECT … FOR UPDATE of a missing row locks a gap,
// which two transactions may both do, and their inserts would deadlock. Of those that
// wait for a first insert which is rolled back, one can still be chosen as a deadlock's
// victim (1213); it gets an error and no commit.
//
// SQLite. There is one writer at a time in a database, and the check writes. A
// deferred transaction that has read before its check and finds that another has
// committed since fails with SQLITE_BUSY (in WAL mode, SQLITE_BUSY_SNAPSHOT) at once,
// as its snapshot is not the newest; one that begins with the check waits for
// busy_timeout at most. _txlock=immediate makes every transaction wait at its
// beginning, where nothing is lost.
