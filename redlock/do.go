package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Do runs fn while it holds key: it waits for the lock as Acquire does, renews
// it while fn runs, and releases it when fn returns or panics.
//
// fn's context ends with ctx, or when the lock is lost, and its cause says which; fn must
// then stop. It has ctx's values and deadline, and carries the lock: FromContext returns
// it, for its fencing token and for Lock.Valid. Do releases the lock, not fn. fn's context ends before the first key is
// deleted, for what fn has started with it and left behind.
//
// fn has run if and only if the lock was acquired. If it was not, Do returns the error of
// Acquire; a *QuorumError then has the Op "acquire". After fn has run:
//
//   - nil: fn returned nil, and a majority had our value until the release.
//   - fn's error, if fn returned one; with it comes what went wrong with the lock.
//   - a *QuorumError with the Op "release". Do can thus return an error although fn
//     succeeded, and a handler that is called again after an error must not take it for
//     "nothing happened". If it matches ErrNoQuorum and none of the next three, fn ended
//     under the lock and its work is done; the release was not heard, and the keys may
//     live on until their ttl.
//   - an error that matches ErrNotHeld, ErrExpired or ErrClosed: the lock was lost before
//     the release, so for a part of its time fn ran unprotected. Do never returns nil
//     after a loss, whatever fn returned. fn's work may be done, and another holder may
//     have worked at the same time. A handler that tries again needs work that can be done
//     twice, or writes that a token guards (package fence) and that record what is done.
//
// fn's context is done at the next renewal, a third of the ttl later at the most, if the
// keys vanish from a majority of the nodes, and two round trips later if ForceRelease breaks
// the lock; see KeepAlive. In any case it is done when validity ends.
//
// fn must not call Do or Acquire for the same key: it would wait for itself until
// its context ends.
func (r *Redlock) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error) (err error) {
	if fn == nil {
		return errors.New("redlock: fn is nil")
	}
	lock, err := r.Acquire(ctx, key, ttl)
	if err != nil {
		return err
	}
	lock.KeepAlive()

	fnCtx, cancel := context.WithCancelCause(&carrier{ctx, lock})
	lock.endWithLock(cancel)
	// Deferred, so that a panic or a Goexit in fn releases too, and goes on.
	defer func() {
		// The release looks at the clock and reports ErrExpired from Until on. It ends
		// fn's context before a key is deleted, for the goroutines that fn has left.
		released := lock.Release(ctx)
		cancel(nil)
		switch {
		case released == nil:
		case err == nil:
			err = released
		default:
			err = fmt.Errorf("%w; and %w", err, released)
		}
	}()
	return fn(fnCtx)
}
