package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Do runs fn while it holds key: it waits for the lock as Acquire does, renews it while fn runs,
// and releases it when fn returns or panics.
//
// fn's context ends with ctx, or when the lock is lost, and its cause says which; fn must then
// stop. It has ctx's values and deadline, and carries the lock: FromContext returns it, for its
// fencing token and for Lock.Valid. fn must not release or detach
// the lock, because Do releases it. fn's context
// also ends before the release deletes the first key, so that goroutines which fn has started and
// left behind can stop.
//
// fn has run if and only if the lock was acquired. If it was not, Do returns the error of Acquire;
// a *QuorumError then has the Op "acquire". After fn has run, Do returns:
//
//   - nil: fn returned nil, and a majority had the lock's value until the release. A nested lock
//     (Config.Reentrant) leaves the question to the release of the outer one.
//   - fn's error, if fn returned one. If something went wrong with the lock too, the error also
//     wraps that.
//   - a *QuorumError with the Op "release". Do can thus return an error although fn succeeded. A
//     handler that is called again after an error must not take it for "nothing happened". If it
//     matches ErrNoQuorum and none of the next three, fn ended under the lock and its work is done;
//     too few nodes confirmed the release, and the keys may live on until their ttl is over.
//   - an error that matches ErrNotHeld, ErrExpired or ErrClosed: the lock was lost before the
//     release, so for a part of its time fn ran unprotected. Do never returns nil after a loss,
//     whatever fn returned. fn's work may be done, and another holder may have worked at the same
//     time. A handler that tries again needs work that can be done twice, or writes that a token
//     guards (package fence) and that record what is done.
//   - with Config.Reentrant, an error that matches ErrReleased: fn ran under a nested lock, and the
//     outer lock was released before fn returned. The same holds as after a loss.
//
// If the keys vanish from a majority of the nodes, fn's context is done at the next renewal, a
// third of the ttl later at the most. If ForceRelease breaks the lock, it is done two round trips
// later; see KeepAlive. In any case it is done when validity ends.
//
// If fn calls Do, Acquire or TryAcquire for the same key with its context, the call fails with
// ErrReentrant at once or, with Config.Reentrant, joins the lock. With a context that does not carry
// the lock, the call waits until fn ends.
func (r *Redlock) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error) (err error) {
	if fn == nil {
		return errors.New("redlock: fn is nil")
	}
	lock, err := r.Acquire(ctx, key, ttl)
	if err != nil {
		return err
	}
	lock.KeepAlive()

	fnCtx, cancel := context.WithCancelCause(&lockContext{ctx, lock})
	lock.endWithLock(cancel)
	// Deferred, so that a panic or a Goexit in fn also releases the lock, and then goes on.
	defer func() {
		// Release reads the clock and returns ErrExpired from Until on. It ends fn's
		// context before a key is deleted, for the goroutines that fn has left behind.
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
