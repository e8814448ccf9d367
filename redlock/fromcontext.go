package redlock

import "context"

// FromContext returns the live lock on key that ctx carries. The context of the function that Do
// runs, Lock.Context, and every context derived from these carry a lock. This is how a function
// under Do gets its fencing token:
//
//	lock, ok := redlock.FromContext(ctx, "invoice:42")
//
// FromContext reports false if ctx carries no lock on key, or if Lock.Valid reports that the lock
// has ended. If locks on several keys were acquired one inside the other, the innermost context
// carries all of them. It does not matter which Redlock made a lock. Of two locks with the same key
// the inner one counts. It hides the outer one even after it has ended.
func FromContext(ctx context.Context, key string) (*Lock, bool) {
	if ctx == nil {
		return nil, false
	}
	l, _ := ctx.Value(lockKey(key)).(*Lock)
	if l == nil || !l.Valid() {
		return nil, false
	}
	return l, true
}

// lockKey is the key under which a context carries the lock on the Redlock key of that name.
type lockKey string

// lockContext is a context that adds a lock to its parent.
type lockContext struct {
	context.Context
	lock *Lock
}

func (c *lockContext) Value(key any) any {
	if k, ok := key.(lockKey); ok && string(k) == c.lock.key {
		return c.lock
	}
	return c.Context.Value(key)
}
