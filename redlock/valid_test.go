package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// lateClock is the clock of a process that is seldom scheduled: it tells the right time,
// and its timers fire a minute late.
type lateClock struct{ clock.Clock }

func (c lateClock) NewTimer(d time.Duration) clock.Timer {
	return lateTimer{c.Clock.NewTimer(d + time.Minute)}
}

func (c lateClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return lateTimer{c.Clock.AfterFunc(d+time.Minute, f)}
}

type lateTimer struct{ clock.Timer }

func (t lateTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d + time.Minute) }

var late = redlock.Config{Clock: lateClock{clock.System()}}

func TestValidIsNeverLate(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		time.Sleep(time.Until(l.Until()) - 1)
		assert.True(t, l.Valid())
		time.Sleep(time.Nanosecond)
		require.NoError(t, l.Context().Err(), "the timer has not fired")
		assert.False(t, l.Valid())
		assert.Equal(t, redlock.ErrExpired, context.Cause(l.Context()), "the lock has ended with it")
		assert.ErrorIs(t, l.Extend(ctx, time.Second), redlock.ErrExpired)
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrExpired)
		assert.False(t, l.Valid())
	})
}

func TestValidFollowsExtendAndRelease(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		require.NoError(t, l.Extend(ctx, 3*time.Second))
		time.Sleep(2 * time.Second)
		assert.True(t, l.Valid())
		require.NoError(t, l.Release(ctx))
		assert.False(t, l.Valid())
		assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
	})
}

func TestReleaseAfterUntilSaysThatTheLockExpired(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		time.Sleep(time.Until(l.Until()))
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrExpired)
		assert.Equal(t, redlock.ErrExpired, context.Cause(l.Context()))
	})
}

// Nothing has told the function of its lock's end, which it sleeps through.
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

// The function's context and the lock end in one step: no goroutine has to run between.
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

// What fn has left running is told before the first key is deleted.
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
