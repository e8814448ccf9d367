// Package election makes one process of several the leader, by a lock of package redlock.
//
//	leaders := election.New(locks, "leader:scheduler", 10*time.Second)
//	err := leaders.Lead(ctx, func(ctx context.Context) error {
//		return schedule(ctx) // in one process at a time; ctx ends if the term does
//	})
//
// Every process that may lead calls [Election.Lead] and stays in it. One of them leads, and the
// others stand by in the queue of the lock, without polling. When the leader resigns, the next
// follows two round trips later. When it dies, the next follows once the ttl of the lock is over.
//
// # Terms
//
// A term is a lock on the name of the election, which is renewed until it is released or lost. It
// begins when [Election.Campaign] returns, or when Lead calls its function. It ends with the lock:
// [redlock.Lock.Context] is done then, before the next term can begin anywhere, under the
// assumptions in docs/safety.md. Lead releases a term only after its function has returned. So after
// a release the function never runs beside the next leader's. After a loss it can: the next leader
// does not wait until the function has noticed the end of its context and returned.
//
// A process that is paused beyond the end of its term may act again when it goes on, before it
// notices the end. Give the Redlock [redlock.Config.Fencing], and let the resource refuse a lower
// token (package fence). Inside Lead's function the token is that of [redlock.FromContext].
//
// # Time
//
// Terms are measured by [redlock.Config.Clock], which the lock heeds by itself. The pauses of
// [Election.Observe] are measured by the system's clock, and in virtual time inside a bubble of
// testing/synctest. A wrong clock there makes an observer look sooner or later, and does nothing
// else.
package election
