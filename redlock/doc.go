// Package redlock locks keys across processes with the Redlock algorithm. A majority of independent
// Redis masters grants each lock, so a lock survives the loss of some of them. Each of these masters
// is a node: a server, a Sentinel-managed master, or a whole Cluster.
//
//	locks, err := redlock.Open([]string{"redis://a", "redis://b", "redis://c"}, redlock.Config{})
//	…
//	err = locks.Do(ctx, "search-index", 10*time.Second, func(ctx context.Context) error {
//		return rebuild(ctx) // one process at a time; ctx ends if the lock is lost
//	})
//
// Most programs need only [Redlock.Do]. [Redlock.TryAcquire] and [Redlock.Acquire] return a [Lock],
// which the program extends, keeps alive and releases itself.
//
// A lock is valid until [Lock.Until]. At that time a timer ends its [Lock.Context], whatever the
// network does. [Lock.Valid] reads the clock itself, so it is never late. A holder that heeds them
// never overlaps with the next one, as long as the masters keep their memory and the clocks run at
// nearly the same speed. docs/safety.md in the repository has the assumptions, the argument, and
// what breaks without them.
//
// With [Config.Fencing] each lock has a token, by which the protected resource can refuse a holder
// that was paused beyond the end of its lock. With [Config.RestartGuard] the votes of masters that
// may have forgotten locks do not count.
//
// With [Config.Reentrant] a function that runs under a lock can call another that locks the same key.
//
// Errors report which master did what: see [QuorumError], [ErrHeld] and [ErrNoQuorum].
package redlock
