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
// fn's context ends with ctx, or when the lock is lost, and its cause says
// which; fn must then stop. Do never returns nil after a loss, whatever fn
// returned: its error matches fn's own and the loss (ErrNotHeld, ErrExpired,
// ErrClosed). If the lock could not be acquired fn is not called, and the error is
// Acquire's. An error of the release comes back too: a *QuorumError whose Op is
// "release" and which matches ErrNoQuorum means that fn ended under the lock, whose
// keys may live on until their ttl.
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

	fnCtx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(lock.Context(), func() { cancel(context.Cause(lock.Context())) })
	// Deferred, so that a panic or a Goexit in fn releases too, and goes on.
	defer func() {
		stop()
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
