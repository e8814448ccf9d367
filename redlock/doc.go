// Package redlock locks resources across processes with a majority of independent
// Redis masters, so that the lock survives the loss of some of them: the Redlock
// algorithm.
//
//	locks, err := redlock.Open([]string{"redis://a", "redis://b", "redis://c"}, redlock.Config{})
//	…
//	err = locks.Do(ctx, "search-index", 10*time.Second, func(ctx context.Context) error {
//		return rebuild(ctx) // one process at a time; ctx ends if the lock is lost
//	})
//
// [Redlock.Do] is what most programs want. [Redlock.TryAcquire] and
// [Redlock.Acquire] hand out a [Lock] to extend, keep alive and release by hand.
//
// A lock has an end: it is valid until [Lock.Until], when a timer ends its [Lock.Context],
// whatever the network does, and [Lock.Valid] is a look at the clock that is never late. A
// holder that heeds them never overlaps with the next one, as long as the masters keep their
// memory and the clocks run at nearly the same speed; docs/safety.md in the
// repository has the assumptions, the argument, and what breaks without them.
//
// [Config.Fencing] hands out a token with each lock by which the protected resource can
// refuse a holder that was paused beyond the end of its lock, and [Config.RestartGuard]
// keeps masters out of the vote that may have forgotten locks.
//
// Errors say which master did what: see [QuorumError], [ErrHeld] and
// [ErrNoQuorum].
package redlock
