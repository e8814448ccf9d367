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
