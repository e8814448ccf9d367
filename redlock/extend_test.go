package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func until(start time.Time, ttl time.Duration) time.Time {
	return start.Add(ttl - clock.DefaultDrift.Of(ttl))
}

func TestExtendLengthensFromBeforeItWasSent(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		time.Sleep(3 * time.Second)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		start := time.Now()
		require.NoError(t, l.Extend(ctx, time.Minute))
		assert.Equal(t, until(start, time.Minute), l.Until())
		time.Sleep(20 * time.Millisecond)
		for _, m := range b.Masters.All() {
			assert.Equal(t, time.Minute-30*time.Millisecond, m.Miniredis().TTL(key))
		}
	})
}

func TestExtendNeverShortens(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Minute)
		was := l.Until()
		require.NoError(t, l.Extend(ctx, time.Second))
		b.Settle()
		assert.Equal(t, was, l.Until())
		for _, m := range b.Masters.All() {
			assert.Equal(t, time.Minute, m.Miniredis().TTL(key))
		}
	})
}

func TestExtendThatFindsNoQuorumChangesNothing(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		was := l.Until()
		b.Masters.Kill(0, 1, 2)
		err := l.Extend(ctx, time.Minute)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		// Case 18: redsync says "already taken" when Unlock or Extend fails.
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.NotContains(t, fmt.Sprint(err), "held by another")
		assert.Equal(t, was, l.Until())
		assert.NoError(t, l.Context().Err(), "still valid")
		require.NoError(t, b.Masters.Restart(0, 1, 2))
	})
}

func TestExtendOfALostLockEndsIt(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, time.Hour, 0, 1, 2)
		err := l.Extend(ctx, ttl)
		require.ErrorIs(t, err, redlock.ErrNotHeld)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.Equal(t, redlock.ErrNotHeld, context.Cause(l.Context()))
		b.Settle()
		for _, i := range []int{0, 1, 2} {
			v, _ := b.Masters.Master(i).Miniredis().Get(key)
			assert.Equal(t, "somebody else", v)
		}
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld, "it never comes back")
		err = l.Release(ctx)
		assert.ErrorIs(t, err, redlock.ErrNotHeld)
		b.Settle()
		assert.Equal(t, []int{0, 1, 2}, b.Has(key), "what was left of ours went")
	})
}

// Case 10: RedLock.net, aioredlock and redlock-rb put a lost key back when they
// renew; redsync's SetNXOnExtend revives an expired lock.
func TestExtendNeverCreatesAKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		for _, m := range b.Masters.All() {
			m.Miniredis().Del(key)
		}
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		b.Settle()
		assert.Empty(t, b.Has(key))

		l = b.Acquire(key, ttl)
		b.Settle()
		b.Commands(0)
		time.Sleep(ttl)
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrExpired)
		b.Settle()
		assert.Empty(t, b.Has(key))
		assert.Empty(t, b.Commands(0), "nobody was asked")
	})
}

func TestExtendThatArrivesTooLateDoesNotCount(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{NodeTimeout: time.Minute}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		done := l.Context().Done()
		b.Settle()
		time.Sleep(ttl - time.Second)
		b.Delay(0, 900*time.Millisecond)
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrExpired)
		<-done
		assert.Equal(t, redlock.ErrExpired, context.Cause(l.Context()))
	})
}

// A caller extends again and again while all masters hang. It has one extension under way, and
// after each caller has gone none waits behind that.
func TestExtendRepeatedAddsNothingToTheRoundUnderWay(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := keep(b, 1, time.Minute)[0]
		b.Stall(0, 1, 2)
		for range 10 {
			require.ErrorIs(t, l.Extend(ctx, time.Minute), redlock.ErrNoQuorum)
		}
		for _, m := range b.Masters.All() {
			m.Resume()
		}
		time.Sleep(time.Second)
		for i := range 3 {
			assert.Equal(t, 1, extensions(b, i), "master %d", i)
		}
	})
}

func TestExtendRefusesABadTTL(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Commands(0)
		assert.ErrorContains(t, l.Extend(ctx, 0), "redlock: ttl")
		assert.ErrorContains(t, l.Extend(ctx, 9*time.Millisecond), "redlock: ttl")
		var none context.Context
		assert.ErrorContains(t, l.Extend(none, ttl), "redlock: ctx")
		b.Settle()
		assert.Empty(t, b.Commands(0))
		assert.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(none), "a release is a release")
	})
}
