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

// A function that does not watch its context learns of the loss from Do's error.
func TestDoReportsALossThatFnSleptThrough(t *testing.T) {
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

func TestDoReleasesAndRepanicsWhenFnPanics(t *testing.T) {
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

func TestFromContextInDo(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true, KeyPrefix: "p:"}, func(b *virtual.Bed) {
		type name struct{}
		caller, cancel := context.WithTimeout(context.WithValue(ctx, name{}, "value"), time.Minute)
		defer cancel()
		var inside context.Context
		require.NoError(t, b.Redlock.Do(caller, key, time.Second, func(ctx context.Context) error {
			inside = context.WithoutCancel(ctx)
			l, ok := redlock.FromContext(ctx, key)
			require.True(t, ok)
			assert.Equal(t, key, l.Key())
			assert.Positive(t, l.FencingToken())
			assert.True(t, l.Valid())
			_, ok = redlock.FromContext(ctx, "p:"+key)
			assert.False(t, ok, "the key is the caller's")
			_, ok = redlock.FromContext(caller, key)
			assert.False(t, ok)

			want, _ := caller.Deadline()
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, want, deadline)
			assert.Equal(t, "value", ctx.Value(name{}))
			return nil
		}))
		_, ok := redlock.FromContext(inside, key)
		assert.False(t, ok, "it was released")
	})
}

func TestFromContextFindsEachOfSeveralKeys(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		keys := []string{"a", "b", "c"}
		require.NoError(t, b.Redlock.Do(ctx, "a", time.Second, func(ctx context.Context) error {
			l, err := b.Redlock.TryAcquire(ctx, "b", time.Second)
			require.NoError(t, err)
			err = b.Redlock.Do(l.Context(), "c", time.Second, func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				for _, k := range keys {
					found, ok := redlock.FromContext(ctx, k)
					require.True(t, ok, k)
					assert.Equal(t, k, found.Key())
				}
				found, _ := redlock.FromContext(ctx, "b")
				assert.Same(t, l, found)
				_, ok := redlock.FromContext(l.Context(), "c")
				assert.False(t, ok)
				return nil
			})
			require.NoError(t, l.Release(ctx))
			_, ok := redlock.FromContext(l.Context(), "b")
			assert.False(t, ok)
			_, ok = redlock.FromContext(l.Context(), "a")
			assert.True(t, ok)
			return err
		}))
	})
}

// Two Redlocks hold locks with the same name. The code under the inner lock must never get the
// token of the other.
func TestFromContextTakesTheInnerOfTwoLocksOnAKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{KeyPrefix: "other:"})
		require.NoError(t, b.Redlock.Do(ctx, key, time.Second, func(outer context.Context) error {
			l, err := other.TryAcquire(outer, key, time.Second)
			require.NoError(t, err)
			found, ok := redlock.FromContext(l.Context(), key)
			require.True(t, ok)
			assert.Same(t, l, found)
			require.NoError(t, l.Release(ctx))
			_, ok = redlock.FromContext(l.Context(), key)
			assert.False(t, ok, "the outer one is not a substitute")
			_, ok = redlock.FromContext(outer, key)
			assert.True(t, ok)
			return nil
		}))
	})
}

func TestFromContextFindsNoLockFromUntilOn(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		time.Sleep(time.Until(l.Until()) - 1)
		found, ok := redlock.FromContext(l.Context(), key)
		require.True(t, ok)
		assert.Same(t, l, found)
		time.Sleep(time.Nanosecond)
		_, ok = redlock.FromContext(l.Context(), key)
		assert.False(t, ok)
		var none context.Context // a caller's mistake
		_, ok = redlock.FromContext(none, key)
		assert.False(t, ok)
		_, ok = redlock.FromContext(ctx, key)
		assert.False(t, ok)
	})
}

// The function sleeps through the end of its lock, and nothing has reported that end to it.
func TestDoNeverReturnsNilAfterUntil(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		var inside context.Context
		err := b.Redlock.Do(ctx, key, time.Second, func(ctx context.Context) error {
			inside = ctx
			l, ok := redlock.FromContext(ctx, key)
			require.True(t, ok)
			time.Sleep(time.Until(l.Until()))
			return ctx.Err()
		})
		assert.ErrorIs(t, err, redlock.ErrExpired)
		assert.Equal(t, redlock.ErrExpired, context.Cause(inside))
	})
}

// The function's context and the lock end in one step: no goroutine has to run in between.
func TestDoEndsFnsContextWithTheLock(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		err := b.Redlock.Do(ctx, key, time.Second, func(ctx context.Context) error {
			l, ok := redlock.FromContext(ctx, key)
			require.True(t, ok)
			time.Sleep(time.Until(l.Until()))
			require.NoError(t, ctx.Err())
			require.False(t, l.Valid())
			assert.Equal(t, redlock.ErrExpired, context.Cause(ctx))
			return nil
		})
		assert.ErrorIs(t, err, redlock.ErrExpired)
	})
}

// Goroutines that fn has left running see the context end before the first key is deleted.
func TestDoEndsFnsContextBeforeTheRelease(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		left := make(chan []int, 1)
		require.NoError(t, b.Redlock.Do(ctx, key, time.Second, func(ctx context.Context) error {
			b.Settle()
			for _, m := range b.Masters.All() {
				m.Delay(10*time.Millisecond, 10*time.Millisecond)
			}
			context.AfterFunc(ctx, func() { left <- b.Has(key) })
			return nil
		}))
		assert.Equal(t, []int{0, 1, 2}, <-left)
	})
}
