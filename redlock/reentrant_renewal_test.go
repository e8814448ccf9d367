package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestNestedLockExtendsTheOuterForALongerTTL(t *testing.T) {
	for _, c := range []struct {
		after, ttl time.Duration
		extends    bool
	}{
		{0, ttl, false},
		{time.Second, ttl - time.Second, false}, // ends before the outer
		{time.Millisecond, ttl, false},          // as long as the outer
		{3 * time.Second, ttl, false},           // two thirds are left
		{4 * time.Second, ttl, true},            // less is left
		{0, ttl + 100*time.Millisecond, true},   // longer than the outer
		{0, time.Minute, true},
		{9 * time.Second, time.Second, false},
		{9 * time.Second, 2 * time.Second, true},
	} {
		virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
			b.Warm()
			outer := b.Acquire(key, ttl)
			before := outer.Until()
			forget(b)
			time.Sleep(c.after)
			start := time.Now()
			nested, err := b.Redlock.TryAcquire(outer.Context(), key, c.ttl)
			require.NoError(t, err)
			assert.Equal(t, outer.Until(), nested.Until())
			b.Settle()
			if c.extends {
				assert.Equal(t, until(start, c.ttl), outer.Until(), c)
				assert.Equal(t, []string{"EVALSHA"}, b.Commands(0))
			} else {
				assert.Equal(t, before, outer.Until(), c)
				assert.Empty(t, b.Commands(0), c)
			}
			require.NoError(t, nested.Release(ctx))
			assert.True(t, outer.Valid())
		})
	}
}

func TestNestedExtendExtendsTheOuterLock(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		outer := b.Acquire(key, ttl)
		nested, err := b.Redlock.TryAcquire(outer.Context(), key, ttl)
		require.NoError(t, err)
		require.NoError(t, nested.Extend(ctx, time.Minute))
		assert.Equal(t, until(time.Now(), time.Minute), outer.Until())
		require.NoError(t, nested.Release(ctx))
		assert.Equal(t, until(time.Now(), time.Minute), outer.Until())
	})
}

// A nested lock that is released while it is being extended has ended; the outer one is extended.
func TestNestedExtendThatItsReleaseOvertakes(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		b.Warm()
		outer := b.Acquire(key, ttl)
		nested, err := b.Redlock.TryAcquire(outer.Context(), key, ttl)
		require.NoError(t, err)
		b.Settle()
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		start := time.Now()
		time.AfterFunc(5*time.Millisecond, func() { assert.NoError(t, nested.Release(ctx)) })
		assert.ErrorIs(t, nested.Extend(ctx, time.Minute), redlock.ErrReleased)
		assert.True(t, outer.Valid())
		assert.Equal(t, until(start, time.Minute), outer.Until())
	})
}

func TestNestedLockIsRefusedIfItsExtensionFails(t *testing.T) {
	for name, acquire := range acquisitions {
		virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
			outer := b.Acquire(key, 6*time.Second)
			b.Settle()
			before := outer.Until()
			noLock := func(*redlock.Lock) { t.Error(name, "has a lock") }
			var failed *redlock.QuorumError

			b.Masters.Kill(0, 1)
			err := acquire(b.Redlock, outer.Context(), noLock)
			require.ErrorIs(t, err, redlock.ErrNoQuorum, name)
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "acquire", failed.Op)
			assert.GreaterOrEqual(t, len(failed.Nodes), 2)
			assert.Equal(t, before, outer.Until())
			assert.True(t, outer.Valid())
			nested, err := b.Redlock.TryAcquire(outer.Context(), key, time.Second)
			require.NoError(t, err, "a shorter one asks no node")
			require.NoError(t, nested.Release(ctx))

			require.NoError(t, b.Masters.Restart(0, 1))
			time.Sleep(time.Second)
			b.Warm()
			b.Steal(key, time.Hour, 0, 1)
			err = acquire(b.Redlock, context.WithoutCancel(outer.Context()), noLock)
			require.ErrorIs(t, err, redlock.ErrNotHeld, name)
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "acquire", failed.Op)
			assert.False(t, outer.Valid(), "the extension found the loss")
		})
	}
}

func TestNestedLockIsRefusedIfItsContextEndsFirst(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		outer := b.Acquire(key, ttl)
		b.Settle()
		b.Stall(0, 1, 2)
		why := errors.New("why")
		hurry, cancel := context.WithTimeoutCause(outer.Context(), time.Millisecond, why)
		defer cancel()
		_, err := b.Redlock.Acquire(hurry, key, time.Minute)
		assert.ErrorIs(t, err, why)
		assert.True(t, outer.Valid())
		b.Resume(0, 1, 2)
		time.Sleep(time.Second)
		require.NoError(t, outer.Release(ctx))
	})
}

func TestNestedLockRefusesABadTTL(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Reentrant: true, RestartGuard: time.Minute}, func(b *virtual.Bed) {
		time.Sleep(2 * time.Minute) // the masters have just started
		outer := b.Acquire(key, ttl)
		for _, bad := range []time.Duration{-1, 0, time.Millisecond, time.Hour} {
			_, err := b.Redlock.TryAcquire(outer.Context(), key, bad)
			assert.ErrorContains(t, err, "ttl")
		}
		assert.True(t, outer.Valid())
		require.NoError(t, outer.Release(ctx))
	})
}

// renewals returns after how many seconds from now a node is asked, within d. The time is counted
// in steps of a tenth of a second.
func renewals(b *virtual.Bed, d time.Duration) (at []float64) {
	forget(b)
	start := time.Now()
	for time.Since(start) < d {
		time.Sleep(100 * time.Millisecond)
		b.Settle()
		if len(b.Asked(0)) > 0 {
			at = append(at, time.Since(start).Seconds())
		}
	}
	return at
}

// nest returns a lock that is nested in the one that carries has.
func nest(b *virtual.Bed, carries context.Context, ttl time.Duration) *redlock.Lock {
	b.Helper()
	l, err := b.Redlock.TryAcquire(carries, key, ttl)
	require.NoError(b, err)
	return l
}

func TestNestedKeepAliveRenewsUntilTheNestedLockEnds(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		b.Warm()
		outer := b.Acquire(key, 9*time.Second)
		require.NoError(t, b.Redlock.Do(outer.Context(), key, 9*time.Second, func(ctx context.Context) error {
			assert.Equal(t, []float64{3, 6, 9, 12, 15, 18}, renewals(b, 20*time.Second))
			return ctx.Err()
		}))
		assert.True(t, outer.Valid())
		left := outer.Until()
		assert.Empty(t, renewals(b, time.Until(left)), "nobody wants it renewed")
		assert.False(t, outer.Valid())
		assert.Equal(t, redlock.ErrExpired, context.Cause(outer.Context()))
	})
}

func TestNestedKeepAliveLeavesTheOuterOneAsItIs(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		b.Warm()
		require.NoError(t, b.Redlock.Do(ctx, key, 9*time.Second, func(ctx context.Context) error {
			require.NoError(t, b.Redlock.Do(ctx, key, 9*time.Second, func(context.Context) error { return nil }))
			assert.Equal(t, []float64{3, 6, 9, 12, 15, 18}, renewals(b, 20*time.Second))
			return ctx.Err()
		}))
	})
}

func TestNestedKeepAliveOfSiblingsLastsUntilTheLast(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		b.Warm()
		outer := b.Acquire(key, 9*time.Second)
		first, second := nest(b, outer.Context(), 9*time.Second), nest(b, outer.Context(), 9*time.Second)
		first.KeepAlive()
		second.KeepAlive()
		first.KeepAlive() // does nothing
		require.NoError(t, first.Release(ctx))
		assert.Equal(t, []float64{3, 6, 9}, renewals(b, 10*time.Second))
		require.NoError(t, second.Release(ctx))
		assert.Empty(t, renewals(b, 6*time.Second))

		// Renewals begin again, at once, as the ttl is nearly over.
		third := nest(b, outer.Context(), time.Second)
		require.NoError(t, outer.Extend(ctx, 9*time.Second))
		third.KeepAlive()
		first.KeepAlive() // has ended: does nothing
		assert.NotEmpty(t, renewals(b, time.Second))
		require.NoError(t, outer.Release(ctx))
		assert.Empty(t, renewals(b, time.Minute))
	})
}

// The renewal was sent before the nested lock ended, and is answered after that.
func TestNestedKeepAliveEndsWhileARenewalIsUnderWay(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		b.Warm()
		outer := b.Acquire(key, 9*time.Second)
		nested := nest(b, outer.Context(), 9*time.Second)
		nested.KeepAlive()
		b.Settle()
		b.Delay(100*time.Millisecond, 100*time.Millisecond)
		time.Sleep(3100 * time.Millisecond)
		require.NoError(t, nested.Release(ctx))
		again := nest(b, outer.Context(), time.Second)
		again.KeepAlive()
		require.NoError(t, again.Release(ctx))
		time.Sleep(time.Second)
		b.Delay(0, 0)
		assert.True(t, outer.Valid())
		assert.Empty(t, renewals(b, time.Minute))
		assert.False(t, outer.Valid())
	})
}

// The outer lock renews 30 s, and the nested one 3 s: a loss is found after a second at the most.
func TestNestedKeepAliveRenewsInTimeForTheShortestTTL(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		b.Warm()
		outer := b.Acquire(key, 30*time.Second)
		outer.KeepAlive()
		nested := nest(b, outer.Context(), 3*time.Second)
		nested.KeepAlive()
		assert.Equal(t, []float64{1, 2, 3, 4}, renewals(b, 4500*time.Millisecond))
		assert.Greater(t, time.Until(outer.Until()), 29*time.Second, "each asks for the longest ttl")
		require.NoError(t, nested.Release(ctx))
		assert.Len(t, renewals(b, 30*time.Second), 3)

		longer := nest(b, outer.Context(), time.Minute)
		longer.KeepAlive()
		assert.Len(t, renewals(b, 30*time.Second), 3)
		assert.Greater(t, time.Until(outer.Until()), 45*time.Second)
		require.NoError(t, longer.Release(ctx))
		time.Sleep(30 * time.Second)
		assert.Less(t, time.Until(outer.Until()), 45*time.Second, "the nested lock's ttl ends with it")
		assert.True(t, outer.Valid())
		require.NoError(t, outer.Release(ctx))
	})
}
