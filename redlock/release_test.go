package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestReleaseDeletesOnlyOurKey(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, ttl, 0, 1)
		require.NoError(t, l.Release(ctx), "a majority had it until now")
		b.Settle()
		assert.Equal(t, []int{0, 1}, b.Has(key))
		assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
		err := l.Release(ctx)
		assert.ErrorIs(t, err, redlock.ErrReleased)
		for i := range 5 {
			b.Commands(i)
		}
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrReleased)
		b.Settle()
		assert.Empty(t, b.Commands(0), "nobody was asked")
	})
}

// Case 3: the script cache is lost between acquire and release.
func TestReleaseSurvivesALostScriptCache(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		for _, m := range b.Masters.All() {
			require.NoError(t, m.FlushScripts())
			m.ResetCommands()
		}
		require.NoError(t, l.Extend(ctx, ttl))
		b.Settle()
		assert.Equal(t, []string{"EVALSHA", "EVAL"}, b.Commands(0))
		for _, m := range b.Masters.All() {
			require.NoError(t, m.FlushScripts())
		}
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// Case 12: node-redlock retries the release of an expired lock for seconds.
func TestReleaseOfAnExpiredLockReturnsAtOnce(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		time.Sleep(ttl)
		b.Settle()
		for i := range 5 {
			b.Commands(i)
		}
		var err error
		assert.Zero(t, virtual.Took(func() { err = l.Release(ctx) }))
		require.ErrorIs(t, err, redlock.ErrNotHeld)
		assert.ErrorIs(t, err, redlock.ErrExpired, "and by our own clock it was over")
		time.Sleep(time.Minute)
		for i := range 5 {
			assert.LessOrEqual(t, len(b.Commands(i)), 1, "nothing is retried")
		}

		// The keys outlive the validity by the drift. The release finds them, but still reports
		// that validity was over.
		l = b.Acquire(key, ttl)
		b.Settle()
		time.Sleep(time.Until(l.Until()))
		err = l.Release(ctx)
		assert.ErrorIs(t, err, redlock.ErrExpired)
		assert.NotErrorIs(t, err, redlock.ErrNotHeld)
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestReleaseRunsOnACancelledContext(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		c, cancel := context.WithCancel(ctx)
		l, err := b.Redlock.TryAcquire(c, key, ttl)
		require.NoError(t, err)
		b.Settle()
		cancel()
		assert.NoError(t, l.Context().Err(), "the lock does not end with the context that acquired it")
		require.NoError(t, l.Release(c))
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// A minority was extended by an hour, and a majority by a second. The release must be repeated for
// as long as the longest key may live.
func TestReleaseAsksForAsLongAsAKeyMayLive(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Stall(0, 1, 2)
		require.ErrorIs(t, l.Extend(ctx, time.Hour), redlock.ErrNoQuorum)
		b.Resume(0, 1, 2)
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Extend(ctx, time.Second))
		b.Settle()
		b.Stall(4)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Minute)
		b.Resume(4)
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key))
	})
}

// A node that is loading, or has just become a replica, answers with an error at once, and
// differently a moment later. The release stays pending for it.
func TestReleaseIsRepeatedAfterAPassingError(t *testing.T) {
	for _, passing := range []string{"LOADING Redis is loading", "READONLY You can't write", "BUSY Redis is busy", "MISCONF no", "CLUSTERDOWN no", "TRYAGAIN no", "MASTERDOWN no", "NOREPLICAS no", "OOM no"} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			l := b.Acquire(key, time.Hour)
			b.Settle()
			b.Masters.Master(2).Miniredis().SetError(passing)
			require.NoError(t, l.Release(ctx))
			b.Settle()
			b.Masters.Master(2).Miniredis().SetError("")
			time.Sleep(3 * time.Second)
			assert.Empty(t, b.Has(key), passing)
		})
	}
}

// A proxy that is restarted breaks connections to masters that are well.
func TestReleaseIsRepeatedOnNewConnectionsBeforeItFails(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		for i := range 3 {
			b.Masters.Master(i).LoseRequests(1)
		}
		var err error
		assert.LessOrEqual(b, virtual.Took(func() { err = l.Release(ctx) }), 50*time.Millisecond)
		assert.NoError(b, err)
		b.Settle() // Release returns when a majority has answered
		assert.Empty(b, b.Has(key))
	})
}

// The keys are gone, and nobody knows whether they were there until then. That is no loss of the
// lock.
func TestReleaseWhoseRepliesWereLostIsNotALoss(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		for i := range 3 {
			b.Masters.Master(i).LoseReplies(1)
		}
		err := l.Release(ctx)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrNotHeld)
		assert.Contains(b, fmt.Sprint(err), "connection lost")
		assert.Empty(b, b.Has(key))
	})
}

// A hung minority costs nothing, and a hung majority one NodeTimeout. A majority that is known to
// refuse connections costs nothing either.
func TestReleaseTakesNoLongerThanItMust(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		locks := map[string]*redlock.Lock{}
		for _, name := range []string{"minority", "majority", "died", "dead"} {
			locks[name] = b.Acquire(name, time.Hour)
		}
		b.Settle()
		b.Stall(0, 1)
		assert.Zero(b, virtual.Took(func() { require.NoError(b, locks["minority"].Release(ctx)) }))
		b.Stall(2)
		assert.Equal(b, virtual.NodeTimeout, virtual.Took(func() {
			assert.ErrorIs(b, locks["majority"].Release(ctx), redlock.ErrNoQuorum)
		}))
		b.Resume(0, 1, 2)
		time.Sleep(5 * time.Second)
		b.Acquire("warm", ttl)
		b.Settle()
		b.Masters.Kill(0, 1, 2)
		assert.LessOrEqual(b, virtual.Took(func() {
			assert.ErrorIs(b, locks["died"].Release(ctx), redlock.ErrNoQuorum)
		}), 50*time.Millisecond, "the first finds that the connections broke, and dials")
		assert.Zero(b, virtual.Took(func() {
			assert.ErrorIs(b, locks["dead"].Release(ctx), redlock.ErrNoQuorum)
		}), "no connection: nothing to wait for")
	})
}

// A release that finds the loss reports it: ErrNoQuorum alone would mean that the lock was held to
// its end.
func TestReleaseFindsTheLossWhileAMinorityIsDown(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, 9*time.Second)
		b.Settle()
		b.Masters.Kill(1)
		b.Masters.Kill(3)
		b.Steal(key, time.Hour, 0, 2, 4)
		b.Acquire("other", 9*time.Second) // finds out which nodes are down
		b.Settle()
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrNotHeld)
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

func TestReleaseIncludesALateGrant(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Masters.Master(4).Delay(500*time.Millisecond, 0)
		l := b.Acquire(key, time.Hour)
		time.Sleep(time.Second)
		assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key))
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
	})
}
