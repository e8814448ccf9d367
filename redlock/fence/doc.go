// Package fence protects a resource with fencing tokens: it refuses the writes of a holder
// whose lock another client has taken over.
//
// [Guard] protects tables of PostgreSQL, MySQL, MariaDB and SQLite, in the transaction of
// the write itself. [RedisGuard] protects keys of a Redis. With a Guard:
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	defer tx.Rollback()
//	if err := guard.Check(ctx, tx, "invoice:42", lock.FencingToken()); err != nil {
//		return err // errors.Is(err, fence.ErrStaleToken): somebody else has the lock
//	}
//	… // the writes, in tx; after an error of any of them return, and roll back
//	return tx.Commit()
//
// In a function that redlock.Redlock.Do runs, redlock.FromContext(ctx, "invoice:42") is the
// lock.
//
// A holder can outlive its lock. If a process is paused after it has checked its lock, it does
// not know, when it goes on, that the lock has ended and another client has it. The lock cannot
// prevent that, but the resource can. Every grant of a lock has a token above that of the
// grant before (redlock.Config.Fencing, redlock.Lock.FencingToken). The resource remembers the
// highest token that it has seen, and refuses a write with a lower one.
//
// With a guard a holder need not call redlock.Lock.Valid: the guard refuses late writes,
// whatever the holder believes. Call Valid right before each action that no guard protects.
//
// Only tokens of the same lock can be compared. So write a resource under one lock only; the
// lock's key is a good name for the resource.
package fence
