package redlock

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A nested lock is a second *Lock on a key that its context already holds. Only the outermost lock
// has keys on the nodes, an Until, and an entry in the scheduler. A nested lock has an end, contexts
// and a wish to be renewed of its own, and no more. So a method about the keys works on l.outermost(),
// which is l itself for an ordinary lock, and the mutex of the outermost lock guards the fields of
// all: they end in one step. The alternative, an inner object that all of them share, would cost
// every ordinary lock that object.

// nestedLocks are the live locks that are nested in one, in the order in which they joined.
type nestedLocks []*Lock

// errNested is the error of what only the outermost lock can do, as it ends that lock.
var errNested = errors.New("the lock is nested in another, which alone can do this")

// outermost returns the lock whose keys are on the nodes: l, unless l is nested.
func (l *Lock) outermost() *Lock {
	if l.outer != nil {
		return l.outer
	}
	return l
}

// joinOuter returns a nested lock if ctx carries a live lock of this Redlock on key. It returns
// neither a lock nor an error if there is none.
func (r *Redlock) joinOuter(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	for carried := innermost(ctx); carried != nil; carried = innermost(carried.Context) {
		l := carried.lock
		if l.r != r || l.key != key || !l.Valid() {
			continue
		}
		if nested, err := l.join(ctx, ttl); nested != nil || err != nil {
			return nested, err
		}
	}
	return nil, nil
}

// join returns a lock that is nested in l. It returns neither a lock nor an error if l has ended.
func (l *Lock) join(ctx context.Context, ttl time.Duration) (*Lock, error) {
	if err := l.r.enter(); err != nil {
		return nil, l.opError("acquire", err)
	}
	defer l.r.operations.Done()
	if !l.r.cfg.Reentrant {
		return nil, l.opError("acquire", ErrReentrant)
	}
	nested, covered := l.nest(ctx, ttl)
	if nested == nil || covered {
		return nested, nil
	}
	err := nested.extend(ctx, ttl, nil)
	if err == nil {
		return nested, nil
	}
	_ = nested.releaseNested()
	var failed *QuorumError
	if errors.As(err, &failed) {
		failed.Op = "acquire" // as the caller asked for; nothing has run under the nested lock
		return nil, failed
	}
	return nil, l.opError("acquire", err)
}

// nest adds a lock that is nested in l's outermost one; nil if l has ended. covered reports whether
// the validity suffices for ttl. Two thirds of ttl suffice, because renewals let a third of it pass.
// Without this allowance, each nested lock with an unchanged ttl would need an extension for the few
// microseconds that have passed. A ttl longer than l's has no such allowance.
func (l *Lock) nest(ctx context.Context, ttl time.Duration) (nested *Lock, covered bool) {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	now := l.r.cfg.Clock.Now()
	outer.expireIfDue(now)
	if l.cause != nil {
		return nil, false
	}
	missing := now.Add(ttl - l.r.cfg.Drift.Of(ttl)).Sub(outer.until)
	covered = missing <= 0 || ttl <= l.ttl && missing <= ttl/renewals
	nested = &Lock{
		r: l.r, key: l.key, nodeKey: l.nodeKey, value: l.value, fence: l.fence,
		values: ctx, outer: outer, ttl: ttl,
	}
	if outer.nested == nil {
		outer.nested = new(nestedLocks)
	}
	*outer.nested = append(*outer.nested, nested)
	return nested, covered
}

// endNested ends the locks that are nested in l; mu is held.
func (l *Lock) endNested(cause error) {
	if l.nested == nil {
		return
	}
	for _, nested := range *l.nested {
		nested.setCause(cause)
	}
	l.nested = nil
}

// ended returns the error of op if the lock has ended.
func (l *Lock) ended(op string) error {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	if l.cause != nil {
		return l.opError(op, l.cause)
	}
	return nil
}

// releaseNested ends a nested lock and asks no node. The outermost lock goes on.
func (l *Lock) releaseNested() error {
	outer := l.outer
	outer.mu.Lock()
	defer outer.mu.Unlock()
	outer.expireIfDue(l.r.cfg.Clock.Now())
	if l.released {
		return l.opError("release", ErrReleased)
	}
	l.released = true
	switch l.cause {
	case nil:
	case ErrNotHeld, ErrExpired:
		failed := l.r.unasked("release", l.key)
		failed.Reason = l.cause
		return failed
	default:
		return l.opError("release", l.cause)
	}
	l.setCause(ErrReleased)
	i := slices.Index(*outer.nested, l)
	*outer.nested = slices.Delete(*outer.nested, i, i+1)
	return nil
}

// renewalTTLs returns the longest and the shortest ttl of the locks on the key that KeepAlive was
// called for; zero if there are none. The nodes are asked for the longest, and so often that the
// holder with the shortest learns of a loss in time. l is the outermost lock, and mu is held.
func (l *Lock) renewalTTLs() (longest, shortest time.Duration) {
	if l.keepAlive {
		longest, shortest = l.ttl, l.ttl
	}
	if l.nested == nil {
		return longest, shortest
	}
	for _, nested := range *l.nested {
		switch {
		case !nested.keepAlive:
		case longest == 0:
			longest, shortest = nested.ttl, nested.ttl
		default:
			longest, shortest = max(longest, nested.ttl), min(shortest, nested.ttl)
		}
	}
	return longest, shortest
}
