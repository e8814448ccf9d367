package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// force breaks what an inspection has seen, and asserts on which nodes that was.
func (b *bed) force(i *redlock.Inspection, want ...int) {
	b.Helper()
	deleted, err := b.lock.ForceRelease(ctx, i)
	require.NoError(b, err)
	assert.Equal(b, b.addrs(want...), deleted)
	b.settle()
}

func (b *bed) addrs(of ...int) (all []string) {
	for _, i := range of {
		all = append(all, b.masters.Master(i).Addr())
	}
	return all
}

// A broken lock is gone everywhere. A holder that has not renewed it yet learns of it at its
// first renewal, and its
// fence stays: the token of the next is higher.
func TestForceReleaseBreaksALock(t *testing.T) {
	virtually(t, 3, redlock.Config{Fencing: true}, func(b *bed) {
		holder := b.client(redlock.Config{Fencing: true})
		l := b.take(holder)
		l.KeepAlive()
		b.settle()
		i := b.inspect(b.lock)
		b.force(i, 0, 1, 2)
		assert.Empty(b, b.has(key))
		assert.NoError(b, l.Context().Err(), "it does not listen yet")
		next := b.take(b.lock)
		assert.Greater(b, next.FencingToken(), l.FencingToken())
		b.settle()
		time.Sleep(ttl/3 + time.Millisecond)
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
		b.settle()
		b.force(i)
		require.NoError(b, next.Release(ctx), "nothing of its was touched")
	})
}

// Who is first in the queue is woken as by the holder's own release.
func TestForceReleaseWakesTheNext(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		dead := b.ready(redlock.Config{})
		l := b.hold(dead, time.Hour)
		queue := b.line(b.crowd(2, redlock.Config{}), key, 50*time.Millisecond)
		time.Sleep(time.Minute)
		i := b.inspect(b.lock)
		broken := time.Now()
		b.force(i, 0, 1, 2, 3, 4)
		next := queue[0].hold()
		assert.Equal(b, broken, queue[0].got)
		assert.False(b, queue[1].over())
		b.release(next)
		b.release(queue[1].hold())
		_ = l.Release(ctx)
		b.noQueues()
	})
}

// Between the look and the break the lock has changed hands: nothing is touched.
func TestForceReleaseLeavesANewHolderAlone(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		one, other := b.client(redlock.Config{}), b.client(redlock.Config{})
		first := b.take(one)
		b.settle()
		i := b.inspect(b.lock)
		b.release(first)
		second := b.take(other)
		b.settle()
		ends := b.redis(0).TTL(key)
		b.force(i)
		assert.Equal(b, []int{0, 1, 2}, b.has(key))
		assert.Equal(b, ends, b.redis(0).TTL(key))
		require.NoError(b, second.Extend(ctx, ttl))
		b.release(second)
	})
}

// Where several have a part each of them goes, and what is of another type stays.
func TestForceReleaseOfASplit(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.lay("ABBT-")
		b.force(b.inspect(b.lock), 0, 1, 2)
		assert.Equal(b, []int{3}, b.has(key))
	})
}

// What does not look like a lock stays, unless that is asked for: an empty value, one that
// is no UUID, and one that does not expire.
func TestForceReleaseOfAForeignKey(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		b.steal(key, time.Minute, 0)
		require.NoError(b, b.redis(1).Set(key, laid("A")))
		require.NoError(b, b.redis(2).Set(key, ""))
		b.commands(0)
		i := b.inspect(b.lock)
		b.commands(0)
		deleted, err := b.lock.ForceRelease(ctx, i)
		assert.Empty(b, deleted)
		assert.ErrorIs(b, err, redlock.ErrForeign)
		assert.EqualError(b, err, `redlock: force release "orders": not a lock of this library: on `+i.Nodes[0].Addr+` its value is no UUID`)
		assert.Empty(b, b.commands(0), "nobody was asked")
		assert.Equal(b, []int{0, 1, 2}, b.has(key))

		deleted, err = b.lock.ForceReleaseForeign(ctx, i)
		require.NoError(b, err)
		assert.Equal(b, b.addrs(0, 1, 2), deleted)
		assert.Empty(b, b.has(key))
	})
}

// Each node is judged by what it has: locks go, and what is beside them stays.
func TestForceReleaseOfALockBesideAForeignKey(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.lay("AAA--")
		b.steal(key, time.Minute, 3)
		b.force(b.inspect(b.lock), 0, 1, 2)
		assert.Equal(b, []int{3}, b.has(key))
	})
}

// The node itself looks whether the key expires, when it deletes it.
func TestForceReleaseOfAKeyThatWasMadeToStay(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		b.lay("AAA")
		i := b.inspect(b.lock)
		require.NoError(b, b.redis(1).Set(key, laid("A")))
		b.force(i, 0, 2)
		assert.Equal(b, []int{1}, b.has(key))
	})
}

// A key of another type stays whatever is asked for.
func TestForceReleaseOfAnotherType(t *testing.T) {
	virtually(t, 1, redlock.Config{}, func(b *bed) {
		b.lay("T")
		i := b.inspect(b.lock)
		for _, release := range []func(context.Context, *redlock.Inspection) ([]string, error){b.lock.ForceRelease, b.lock.ForceReleaseForeign} {
			deleted, err := release(ctx, i)
			assert.Empty(b, deleted)
			assert.ErrorIs(b, err, redlock.ErrForeign)
			assert.ErrorContains(b, err, "it is a list")
			assert.Equal(b, []int{0}, b.has(key))
		}
	})
}

func TestForceReleaseOfAFreeKey(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		i := b.inspect(b.lock)
		b.commands(0)
		b.force(i)
		assert.Empty(b, b.commands(0), "there is nothing to ask for")
		l := b.acquire(key, ttl)
		b.settle()
		b.force(i)
		require.NoError(b, l.Release(ctx), "it was not seen")
	})
}

// What expired meanwhile is gone all the same.
func TestForceReleaseOfAnExpiredLock(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		l := b.acquire(key, time.Second)
		b.settle()
		i := b.inspect(b.lock)
		time.Sleep(2 * time.Second)
		b.force(i)
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrExpired)
	})
}

// A minority that is silent is asked again when it answers, also where it was silent
// for the inspection.
func TestForceReleaseReachesASilentMinorityLater(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		l := b.acquire(key, time.Minute)
		b.settle()
		b.stall(1)
		i := b.inspect(b.lock)
		b.masters.Kill(4)
		b.force(i, 0, 2, 3)
		assert.Equal(b, []int{1, 4}, b.has(key))
		time.Sleep(10 * time.Second)
		b.masters.Master(1).Resume()
		require.NoError(b, b.masters.Restart(4))
		time.Sleep(2 * time.Second)
		assert.Empty(b, b.has(key))
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
	})
}

// Without a majority nobody can say that the lock is broken.
func TestForceReleaseWithoutAQuorum(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		l := b.acquire(key, time.Minute)
		b.settle()
		i := b.inspect(b.lock)
		b.stall(0, 1, 2)
		start := time.Now()
		deleted, err := b.lock.ForceRelease(ctx, i)
		assert.Equal(b, nodeTimeout, time.Since(start))
		assert.Equal(b, b.addrs(3, 4), deleted)
		failed := (*redlock.QuorumError)(nil)
		require.ErrorAs(b, err, &failed)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, "force release", failed.Op)
		assert.Equal(b, 2, failed.Granted)
		assert.Equal(b, 3, failed.Need)
		assert.Len(b, failed.Nodes, 3)
		assert.NotContains(b, text(err), l.Value())
		for m := range 3 {
			assert.Equal(b, b.masters.Master(m).Addr(), failed.Nodes[m].Addr)
			assert.ErrorContains(b, failed.Nodes[m], "no answer within 200ms")
			b.masters.Master(m).Resume()
		}
		time.Sleep(2 * time.Second)
		assert.Empty(b, b.has(key), "the others are asked until they answer")
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
	})
}

// Who wrote a key that does not expire may use its value again: it is asked for once.
func TestForceReleaseDoesNotLieInWaitForAForeignValue(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		b.steal(key, 0, 0, 1, 2)
		i := b.inspect(b.lock)
		b.masters.Kill(2)
		deleted, err := b.lock.ForceReleaseForeign(ctx, i)
		require.NoError(b, err)
		assert.Equal(b, b.addrs(0, 1), deleted)
		time.Sleep(time.Second)
		require.NoError(b, b.masters.Restart(2))
		time.Sleep(time.Minute)
		assert.Equal(b, []int{2}, b.has(key))
	})
}

func TestForceReleaseWhenTheContextEnds(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		l := b.acquire(key, time.Minute)
		b.settle()
		i := b.inspect(b.lock)
		why := errors.New("why")
		gone, cancel := context.WithCancelCause(ctx)
		cancel(why)
		deleted, err := b.lock.ForceRelease(gone, i)
		assert.Empty(b, deleted)
		assert.EqualError(b, err, `redlock: force release "orders": why`)
		assert.ErrorIs(b, err, why)
		b.settle()
		assert.Len(b, b.has(key), 3, "nobody was asked")

		b.stall(0, 1)
		soon, cancelled := context.WithTimeoutCause(ctx, 20*time.Millisecond, why)
		defer cancelled()
		assert.Equal(b, 20*time.Millisecond, took(func() { deleted, err = b.lock.ForceRelease(soon, i) }))
		assert.Equal(b, b.addrs(2), deleted)
		assert.NotErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorIs(b, err, why)
		b.masters.Master(0).Resume()
		b.masters.Master(1).Resume()
		time.Sleep(time.Second)
		assert.Empty(b, b.has(key))
		_ = l.Release(ctx)
	})
}

// Values are no more to be seen of a release by force than of any other.
func TestForceReleaseHidesTheValue(t *testing.T) {
	virtually(t, 1, redlock.Config{}, func(b *bed) {
		var said logbook
		client := b.masters.Master(0).Client()
		client.AddHook(after(func(cmd redis.Cmder) { _, _ = said.Write([]byte(cmd.String())) }))
		r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		l := b.acquire(key, time.Minute)
		for range 2 {
			i, err := r.Inspect(ctx, key)
			require.NoError(b, err)
			_, err = r.ForceRelease(ctx, i)
			require.NoError(b, err)
		}
		assert.Positive(b, said.says("eval"))
		assert.Zero(b, said.says(l.Value()))
		_ = l.Release(ctx)
	})
}
