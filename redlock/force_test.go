package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A broken lock is gone everywhere. A holder that has not renewed it yet learns of the break at its
// first renewal. The fence stays, so the next holder's token is higher.
func TestForceReleaseBreaksALock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true}, func(b *virtual.Bed) {
		holder := b.NewRedlock(redlock.Config{Fencing: true})
		l := b.Take(holder)
		l.KeepAlive()
		b.Settle()
		i := b.Inspect(b.Redlock)
		b.ForceRelease(i, 0, 1, 2)
		assert.Empty(b, b.Has(key))
		assert.NoError(b, l.Context().Err(), "it does not listen yet")
		next := b.Take(b.Redlock)
		assert.Greater(b, next.FencingToken(), l.FencingToken())
		b.Settle()
		time.Sleep(ttl/3 + time.Millisecond)
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
		b.Settle()
		b.ForceRelease(i)
		require.NoError(b, next.Release(ctx), "nothing of its was touched")
	})
}

// The first waiter in the queue is woken as by the holder's own release.
func TestForceReleaseWakesTheNext(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		dead := b.ReadyParty(redlock.Config{})
		l := b.Hold(dead, time.Hour)
		queue := b.WaitInTurn(b.ReadyParties(2, redlock.Config{}), key, 50*time.Millisecond)
		time.Sleep(time.Minute)
		i := b.Inspect(b.Redlock)
		broken := time.Now()
		b.ForceRelease(i, 0, 1, 2, 3, 4)
		next := queue[0].Hold()
		assert.Equal(b, broken, queue[0].Got)
		assert.False(b, queue[1].Over())
		b.Release(next)
		b.Release(queue[1].Hold())
		_ = l.Release(ctx)
		b.NoQueues()
	})
}

// The lock changes hands between the inspection and the break. Nothing is touched.
func TestForceReleaseLeavesANewHolderAlone(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		one, other := b.NewRedlock(redlock.Config{}), b.NewRedlock(redlock.Config{})
		first := b.Take(one)
		b.Settle()
		i := b.Inspect(b.Redlock)
		b.Release(first)
		second := b.Take(other)
		b.Settle()
		ends := b.Redis(0).TTL(key)
		b.ForceRelease(i)
		assert.Equal(b, []int{0, 1, 2}, b.Has(key))
		assert.Equal(b, ends, b.Redis(0).TTL(key))
		require.NoError(b, second.Extend(ctx, ttl))
		b.Release(second)
	})
}

// If several clients have a part of the votes, all their keys are deleted. A key of another type
// stays.
func TestForceReleaseOfASplitVote(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		lay(b, "ABBT-")
		b.ForceRelease(b.Inspect(b.Redlock), 0, 1, 2)
		assert.Equal(b, []int{3}, b.Has(key))
	})
}

// A value that does not look like a lock stays, unless ForceRelease is asked to delete it:
// an empty value, one that is no UUID, and one that does not expire.
func TestForceReleaseOfAForeignKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, time.Minute, 0)
		require.NoError(b, b.Redis(1).Set(key, laid("A")))
		require.NoError(b, b.Redis(2).Set(key, ""))
		b.Commands(0)
		i := b.Inspect(b.Redlock)
		b.Commands(0)
		deleted, err := b.Redlock.ForceRelease(ctx, i)
		assert.Empty(b, deleted)
		assert.ErrorIs(b, err, redlock.ErrForeign)
		assert.EqualError(b, err, `redlock: force release "orders": not a lock of this library: on `+i.Nodes[0].Addr+` its value is no UUID`)
		assert.Empty(b, b.Commands(0), "nobody was asked")
		assert.Equal(b, []int{0, 1, 2}, b.Has(key))

		deleted, err = b.Redlock.ForceReleaseForeign(ctx, i)
		require.NoError(b, err)
		assert.Equal(b, b.Addrs(0, 1, 2), deleted)
		assert.Empty(b, b.Has(key))
	})
}

// Each node is judged by its own value: locks are deleted, and other values stay.
func TestForceReleaseOfALockBesideAForeignKey(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		lay(b, "AAA--")
		b.Steal(key, time.Minute, 3)
		b.ForceRelease(b.Inspect(b.Redlock), 0, 1, 2)
		assert.Equal(b, []int{3}, b.Has(key))
	})
}

// The node itself checks whether the key expires when it deletes the key.
func TestForceReleaseOfAKeyThatWasMadeToStay(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		lay(b, "AAA")
		i := b.Inspect(b.Redlock)
		require.NoError(b, b.Redis(1).Set(key, laid("A")))
		b.ForceRelease(i, 0, 2)
		assert.Equal(b, []int{1}, b.Has(key))
	})
}

// A key of another type stays in any case.
func TestForceReleaseOfAnotherType(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		lay(b, "T")
		i := b.Inspect(b.Redlock)
		for _, release := range []func(context.Context, *redlock.Inspection) ([]string, error){b.Redlock.ForceRelease, b.Redlock.ForceReleaseForeign} {
			deleted, err := release(ctx, i)
			assert.Empty(b, deleted)
			assert.ErrorIs(b, err, redlock.ErrForeign)
			assert.ErrorContains(b, err, "it is a list")
			assert.Equal(b, []int{0}, b.Has(key))
		}
	})
}

func TestForceReleaseOfAFreeKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		i := b.Inspect(b.Redlock)
		b.Commands(0)
		b.ForceRelease(i)
		assert.Empty(b, b.Commands(0), "there is nothing to ask for")
		l := b.Acquire(key, ttl)
		b.Settle()
		b.ForceRelease(i)
		require.NoError(b, l.Release(ctx), "it was not seen")
	})
}

// A key that expired meanwhile is gone anyway.
func TestForceReleaseOfAnExpiredLock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		b.Settle()
		i := b.Inspect(b.Redlock)
		time.Sleep(2 * time.Second)
		b.ForceRelease(i)
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrExpired)
	})
}

// A silent minority is asked again when it answers, even if it was also silent during the
// inspection.
func TestForceReleaseReachesASilentMinorityLater(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Minute)
		b.Settle()
		b.Stall(1)
		i := b.Inspect(b.Redlock)
		b.Masters.Kill(4)
		b.ForceRelease(i, 0, 2, 3)
		assert.Equal(b, []int{1, 4}, b.Has(key))
		time.Sleep(10 * time.Second)
		b.Resume(1)
		require.NoError(b, b.Masters.Restart(4))
		time.Sleep(2 * time.Second)
		assert.Empty(b, b.Has(key))
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
	})
}

// Without a majority nobody knows whether the lock is broken.
func TestForceReleaseWithoutAQuorum(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Minute)
		b.Settle()
		i := b.Inspect(b.Redlock)
		b.Stall(0, 1, 2)
		start := time.Now()
		deleted, err := b.Redlock.ForceRelease(ctx, i)
		assert.Equal(b, virtual.NodeTimeout, time.Since(start))
		assert.Equal(b, b.Addrs(3, 4), deleted)
		failed := (*redlock.QuorumError)(nil)
		require.ErrorAs(b, err, &failed)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, "force release", failed.Op)
		assert.Equal(b, 2, failed.Granted)
		assert.Equal(b, 3, failed.Need)
		assert.Len(b, failed.Nodes, 3)
		assert.NotContains(b, fmt.Sprint(err), l.Value())
		for m := range 3 {
			assert.Equal(b, b.Masters.Master(m).Addr(), failed.Nodes[m].Addr)
			assert.ErrorContains(b, failed.Nodes[m], "no answer within 200ms")
			b.Masters.Master(m).Resume()
		}
		time.Sleep(2 * time.Second)
		assert.Empty(b, b.Has(key), "the others are asked until they answer")
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
	})
}

// The writer of a key that does not expire may use its value again, so the nodes are asked only
// once.
func TestForceReleaseDoesNotLieInWaitForAForeignValue(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, 0, 0, 1, 2)
		i := b.Inspect(b.Redlock)
		b.Masters.Kill(2)
		deleted, err := b.Redlock.ForceReleaseForeign(ctx, i)
		require.NoError(b, err)
		assert.Equal(b, b.Addrs(0, 1), deleted)
		time.Sleep(time.Second)
		require.NoError(b, b.Masters.Restart(2))
		time.Sleep(time.Minute)
		assert.Equal(b, []int{2}, b.Has(key))
	})
}

func TestForceReleaseWhenTheContextEnds(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Minute)
		b.Settle()
		i := b.Inspect(b.Redlock)
		why := errors.New("why")
		gone, cancel := context.WithCancelCause(ctx)
		cancel(why)
		deleted, err := b.Redlock.ForceRelease(gone, i)
		assert.Empty(b, deleted)
		assert.EqualError(b, err, `redlock: force release "orders": why`)
		assert.ErrorIs(b, err, why)
		b.Settle()
		assert.Len(b, b.Has(key), 3, "nobody was asked")

		b.Stall(0, 1)
		soon, cancelled := context.WithTimeoutCause(ctx, 20*time.Millisecond, why)
		defer cancelled()
		assert.Equal(b, 20*time.Millisecond, virtual.Took(func() { deleted, err = b.Redlock.ForceRelease(soon, i) }))
		assert.Equal(b, b.Addrs(2), deleted)
		assert.NotErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorIs(b, err, why)
		b.Resume(0, 1)
		time.Sleep(time.Second)
		assert.Empty(b, b.Has(key))
		_ = l.Release(ctx)
	})
}

// A release by force shows no more of the values than any other release.
func TestForceReleaseHidesTheValue(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		var said spy.Log
		client := b.Masters.Master(0).Client()
		client.AddHook(spy.After(func(cmd redis.Cmder) { _, _ = said.Write([]byte(cmd.String())) }))
		r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		l := b.Acquire(key, time.Minute)
		for range 2 {
			i, err := r.Inspect(ctx, key)
			require.NoError(b, err)
			_, err = r.ForceRelease(ctx, i)
			require.NoError(b, err)
		}
		assert.Positive(b, said.Says("eval"))
		assert.Zero(b, said.Says(l.Value()))
		_ = l.Release(ctx)
	})
}
