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
	for carried := innermost(ctx); carried != nil; carried = innermost(carried.Context) {
		if carried.lock.key != key {
			continue
		}
		if !carried.lock.Valid() {
			return nil, false
		}
		return carried.lock, true
	}
	return nil, false
}

// innermost returns the innermost lockContext that ctx is or is derived from; nil if there is none.
// The next one is that of the Context in it. To look a lock up costs a call and no object.
func innermost(ctx context.Context) *lockContext {
	carried, _ := ctx.Value(&lockContextKey).(*lockContext)
	return carried
}

// lockContextKey is the key under which a lockContext returns itself, by the key's address.
var lockContextKey byte

// lockContext is a context that adds a lock to its parent.
type lockContext struct {
	context.Context
	lock *Lock
}

func (c *lockContext) Value(key any) any {
	if key == &lockContextKey {
		return c
	}
	return c.Context.Value(key)
}
