// Package fence is the protected resource's side of fencing tokens: it refuses the
// writes of a holder whose lock has been taken over.
//
// A lock can be outlived by its holder: a process that is paused after it has looked
// at its lock does not know, when it goes on, that the lock has ended and somebody
// else has it. No lock can prevent that; the resource can. Every grant of a lock has
// a token above that of the grant before (redlock.Config.Fencing,
// redlock.Lock.FencingToken). The resource remembers the highest token that it has
// seen and takes no write with a lower one.
//
// [Guard] does so for tables of PostgreSQL, MySQL, MariaDB and SQLite, in the
// transaction of the write itself. [RedisGuard] does so for keys of a Redis:
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
// lock. A guard needs no look at the clock, such as redlock.Lock.Valid: it refuses what
// comes too late, whatever the holder believes. For what no guard protects, call Valid
// right before each action.
//
// A token means something beside other tokens of the same lock only. So a resource is
// written under one lock, and the lock's key is a good name for it.
package fence
