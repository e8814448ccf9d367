package redlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

func TestDoHoldsTheLockWhileFnRuns(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		other := b.client(redlock.Config{})
		err := b.lock.Do(ctx, key, time.Second, func(ctx context.Context) error {
			for range 10 {
				_, err := other.TryAcquire(ctx, key, time.Second)
				assert.ErrorIs(t, err, redlock.ErrHeld)
				time.Sleep(time.Second)
			}
			return ctx.Err()
		})
		require.NoError(t, err)
		b.settle()
		assert.Empty(t, b.has(key))
	})
}

func TestDoPassesFnsErrorOn(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		mine := errors.New("mine")
		err := b.lock.Do(ctx, key, ttl, func(context.Context) error { return mine })
		assert.Equal(t, mine, err)
		b.settle()
		assert.Empty(t, b.has(key))
	})
}

func TestDoNeverReturnsNilAfterALoss(t *testing.T) {
	mine := errors.New("mine")
	for _, returns := range []error{nil, mine} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			err := b.lock.Do(ctx, key, 3*time.Second, func(ctx context.Context) error {
				b.settle()
				b.steal(key, time.Hour, 0, 1, 2)
				<-ctx.Done()
				assert.Equal(t, redlock.ErrNotHeld, context.Cause(ctx))
				return returns
			})
			require.ErrorIs(t, err, redlock.ErrNotHeld)
			if returns != nil {
				assert.ErrorIs(t, err, mine)
			}
		})
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			err := b.lock.Do(ctx, key, 3*time.Second, func(ctx context.Context) error {
				b.settle()
				b.stall(0, 1, 2, 3, 4)
				<-ctx.Done()
				assert.Equal(t, redlock.ErrExpired, context.Cause(ctx))
				for _, m := range b.masters.All() {
					m.Resume()
				}
				return returns
			})
			require.ErrorIs(t, err, redlock.ErrExpired)
			if returns != nil {
				assert.ErrorIs(t, err, mine)
			}
		})
	}
}

// A holder that does not look at its context is told afterwards.
func TestDoTellsAHolderThatSleptThroughItsLoss(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		err := b.lock.Do(ctx, key, time.Second, func(context.Context) error {
			b.settle()
			b.masters.Kill(0, 1)
			time.Sleep(time.Minute)
			assert.NoError(t, b.masters.Restart(0, 1))
			return nil
		})
		assert.ErrorIs(t, err, redlock.ErrExpired)
	})
}

func TestDoEndsFnsContextWithTheCallers(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		why := errors.New("why")
		c, cancel := context.WithCancelCause(ctx)
		err := b.lock.Do(c, key, ttl, func(ctx context.Context) error {
			cancel(why)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		assert.Equal(t, why, err)
		b.settle()
		assert.Empty(t, b.has(key), "released although its context had ended")
	})
}

func TestAPanicInFnReleasesAndGoesOn(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		assert.PanicsWithValue(t, "boom", func() {
			_ = b.lock.Do(ctx, key, ttl, func(context.Context) error { panic("boom") })
		})
		b.settle()
		assert.Empty(t, b.has(key))

		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = b.lock.Do(ctx, key, ttl, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-exited
		b.settle()
		assert.Empty(t, b.has(key))
	})
}

func TestDoDoesNotCallFnWithoutTheLock(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		b.steal(key, time.Hour, 0, 1, 2)
		c, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := b.lock.Do(c, key, ttl, func(context.Context) error {
			t.Error("fn was called")
			return nil
		})
		assert.ErrorIs(t, err, redlock.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestDoReportsAReleaseThatFoundNoQuorum(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		err := b.lock.Do(ctx, key, ttl, func(context.Context) error {
			b.settle()
			b.masters.Kill(0, 1)
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.Contains(t, text(err), "release")
		require.NoError(t, b.masters.Restart(0, 1))
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.has(key))
	})
}
