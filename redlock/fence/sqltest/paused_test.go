package sqltest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/fence"
)

// TestPausedClient is the paused client of "How to do distributed locking", end to end. A has
// the lock and is paused for longer than the lock lasts. B gets the lock and writes. A goes on,
// still believes that it has the lock, and its write is refused.
//
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
func TestPausedClient(t *testing.T) {
	const ttl = 10 * time.Second
	ctx := t.Context()
	masters := inmemory.Start(t, 3)
	client := func(c clock.Clock) *redlock.Redlock {
		locks, err := redlock.Open(masters.URLs(), redlock.Config{Fencing: true, Clock: c})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, locks.Close()) })
		return locks
	}
	// No time passes for a paused process.
	a, b := client(clock.Skewed(clock.System(), 1e-6, 0)), client(nil)

	db := openSQLite(t, "_pragma=busy_timeout(10000)")
	defer db.Close()
	guard, err := fence.New(fence.SQLite, "")
	require.NoError(t, err)
	require.NoError(t, guard.Create(ctx, db))
	for _, statement := range []string{
		"CREATE TABLE files (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
		"INSERT INTO files VALUES ('report', 'empty')",
	} {
		_, err := db.ExecContext(ctx, statement)
		require.NoError(t, err)
	}

	lockA, err := a.TryAcquire(ctx, "report", ttl)
	require.NoError(t, err)
	require.NoError(t, save(lockA.Context(), db, guard, lockA, "A's first"))
	_, err = b.TryAcquire(ctx, "report", ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)

	// A is paused.
	for _, m := range masters.All() {
		m.JumpClock(2 * ttl)
	}
	lockB, err := b.Acquire(ctx, "report", time.Minute)
	require.NoError(t, err)
	require.Greater(t, lockB.FencingToken(), lockA.FencingToken())
	require.NoError(t, save(lockB.Context(), db, guard, lockB, "B's"))

	// A goes on. It has not noticed the loss yet.
	require.NoError(t, lockA.Context().Err())
	err = save(lockA.Context(), db, guard, lockA, "A's second")
	require.ErrorIs(t, err, fence.ErrStaleToken)
	var stale *fence.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, fence.StaleError{Resource: "report", Token: lockA.FencingToken(), Highest: lockB.FencingToken()}, *stale)

	text := ""
	require.NoError(t, db.QueryRowContext(ctx, "SELECT text FROM files").Scan(&text))
	require.Equal(t, "B's", text)
	require.NoError(t, save(lockB.Context(), db, guard, lockB, "B's second"), "B goes on as well")
	require.ErrorIs(t, lockA.Release(ctx), redlock.ErrNotHeld)
	require.NoError(t, lockB.Release(ctx))
}

// save writes as a holder should: it checks and writes in one transaction.
func save(ctx context.Context, db *sql.DB, guard *fence.Guard, lock *redlock.Lock, text string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := guard.Check(ctx, tx, lock.Key(), lock.FencingToken()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE files SET text = ? WHERE name = ?", text, lock.Key()); err != nil {
		return err
	}
	return tx.Commit()
}
