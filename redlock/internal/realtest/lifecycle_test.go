package realtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// Five real masters, from acquisition to release, with a prefix.
func TestRealAcquireExtendRelease(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{KeyPrefix: "lock:"})
	other := f.redlock(redlock.Config{KeyPrefix: "lock:"})

	l := f.acquire(r, key, ttl)
	f.onAll("lock:"+key, l)
	assert.Empty(t, f.has(key), "the key has its prefix on the nodes")
	assert.Equal(t, key, l.Key(), "and not in the API")

	_, err := other.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	f.onAll("lock:"+key, l)

	require.NoError(t, l.Extend(f.ctx, time.Hour))
	for i := range f.servers {
		f.eventually("the key lives longer", func() bool {
			return f.admin[i].PTTL(f.ctx, "lock:"+key).Val() > time.Minute
		})
	}
	require.NoError(t, l.Extend(f.ctx, ttl), "it never shortens")
	for i := range f.servers {
		assert.Greater(t, f.admin[i].PTTL(f.ctx, "lock:"+key).Val(), time.Minute)
	}

	require.NoError(t, f.release(l))
	assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
	f.gone("lock:" + key)
	require.NoError(t, f.release(f.acquire(other, key, ttl)), "it is free again")
	for i := range f.servers {
		f.eventually("no key of any name is left", func() bool { return f.admin[i].DBSize(f.ctx).Val() == 0 })
	}
}

// KeepAlive renews at a third of the ttl, and no renewal follows the release (case 11).
func TestRealKeepAlive(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{})
	l := f.acquire(r, key, 1200*time.Millisecond)
	first := l.Until()
	l.KeepAlive()
	f.eventually("it has been renewed past its first ttl", func() bool {
		return time.Now().After(first.Add(50*time.Millisecond)) || l.Context().Err() != nil
	})
	require.NoError(t, l.Context().Err())
	assert.True(t, l.Until().After(first))
	assert.GreaterOrEqual(t, len(f.has(key)), 3)
	require.NoError(t, f.release(l))
	f.gone(key)
}

// Do renews and releases by itself, and reports every loss as an error.
func TestRealDo(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{})
	require.NoError(t, r.Do(f.ctx, key, ttl, func(context.Context) error {
		assert.GreaterOrEqual(t, len(f.has(key)), 2)
		return nil
	}))
	f.gone(key)

	err := r.Do(f.ctx, key, 600*time.Millisecond, func(ctx context.Context) error {
		for _, a := range f.admin {
			require.NoError(t, a.FlushAll(f.ctx).Err())
		}
		<-ctx.Done() // the next renewal finds the loss
		return nil
	})
	assert.ErrorIs(t, err, redlock.ErrNotHeld)
}

// Close releases the locks that are held.
func TestRealCloseReleasesHeldLocks(t *testing.T) {
	f := startFleet(t, 5)
	r, err := redlock.New(f.clients(), redlock.Config{})
	require.NoError(t, err)
	l := f.acquire(r, key, time.Hour)
	l.KeepAlive()
	require.NoError(t, r.Close())
	assert.Equal(t, redlock.ErrClosed, context.Cause(l.Context()))
	assert.Empty(t, f.has(key))
}
