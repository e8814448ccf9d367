package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestDoHoldsTheLockWhileFnRuns(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{})
		err := b.Redlock.Do(ctx, key, time.Second, func(ctx context.Context) error {
			for range 10 {
				_, err := other.TryAcquire(ctx, key, time.Second)
				assert.ErrorIs(t, err, redlock.ErrHeld)
				time.Sleep(time.Second)
			}
			return ctx.Err()
		})
		require.NoError(t, err)
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestDoPassesFnsErrorOn(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		mine := errors.New("mine")
		err := b.Redlock.Do(ctx, key, ttl, func(context.Context) error { return mine })
		assert.Equal(t, mine, err)
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestDoNeverReturnsNilAfterALoss(t *testing.T) {
	mine := errors.New("mine")
	for _, returns := range []error{nil, mine} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			err := b.Redlock.Do(ctx, key, 3*time.Second, func(ctx context.Context) error {
				b.Settle()
				b.Steal(key, time.Hour, 0, 1, 2)
				<-ctx.Done()
				assert.Equal(t, redlock.ErrNotHeld, context.Cause(ctx))
				return returns
			})
			require.ErrorIs(t, err, redlock.ErrNotHeld)
			if returns != nil {
				assert.ErrorIs(t, err, mine)
			}
		})
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			err := b.Redlock.Do(ctx, key, 3*time.Second, func(ctx context.Context) error {
				b.Settle()
				b.Stall(0, 1, 2, 3, 4)
				<-ctx.Done()
				assert.Equal(t, redlock.ErrExpired, context.Cause(ctx))
				for _, m := range b.Masters.All() {
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
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		err := b.Redlock.Do(ctx, key, time.Second, func(context.Context) error {
			b.Settle()
			b.Masters.Kill(0, 1)
			time.Sleep(time.Minute)
			assert.NoError(t, b.Masters.Restart(0, 1))
			return nil
		})
		assert.ErrorIs(t, err, redlock.ErrExpired)
	})
}

func TestDoEndsFnsContextWithTheCallers(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		why := errors.New("why")
		c, cancel := context.WithCancelCause(ctx)
		err := b.Redlock.Do(c, key, ttl, func(ctx context.Context) error {
			cancel(why)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		assert.Equal(t, why, err)
		b.Settle()
		assert.Empty(t, b.Has(key), "released although its context had ended")
	})
}

func TestAPanicInFnReleasesAndGoesOn(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		assert.PanicsWithValue(t, "boom", func() {
			_ = b.Redlock.Do(ctx, key, ttl, func(context.Context) error { panic("boom") })
		})
		b.Settle()
		assert.Empty(t, b.Has(key))

		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = b.Redlock.Do(ctx, key, ttl, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-exited
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestDoDoesNotCallFnWithoutTheLock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, time.Hour, 0, 1, 2)
		c, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := b.Redlock.Do(c, key, ttl, func(context.Context) error {
			t.Error("fn was called")
			return nil
		})
		assert.ErrorIs(t, err, redlock.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestDoReportsAReleaseThatFoundNoQuorum(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		err := b.Redlock.Do(ctx, key, ttl, func(context.Context) error {
			b.Settle()
			b.Masters.Kill(0, 1)
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.Contains(t, fmt.Sprint(err), "release")
		require.NoError(t, b.Masters.Restart(0, 1))
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key))
	})
}
