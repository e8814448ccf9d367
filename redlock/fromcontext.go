package redlock

import "context"

// FromContext returns the live lock on key that ctx carries: the context of the function
// that Do runs, Lock.Context, and every context derived from these carry one. It is how
// a function under Do gets at its fencing token:
//
//	lock, ok := redlock.FromContext(ctx, "invoice:42")
//
// It reports false if ctx carries no lock on key, or if Lock.Valid says that the lock has
// ended. A context carries the locks of all keys that were acquired with it, one
// inside the other. It does not matter which Redlock made a lock. Of two locks with the
// same key the inner one counts. It hides the outer one even after it has ended.
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

// lockKey is the key under which a context has the lock on that resource.
type lockKey string

// carrier is its parent and a lock.
type carrier struct {
	context.Context
	lock *Lock
}

func (c *carrier) Value(key any) any {
	if k, ok := key.(lockKey); ok && string(k) == c.lock.key {
		return c.lock
	}
	return c.Context.Value(key)
}
