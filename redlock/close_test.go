package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

func TestCloseReleasesHeldLocks(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
		require.NoError(t, err)
		var locks []*redlock.Lock
		for _, k := range []string{"a", "b", "c"} {
			l, err := r.TryAcquire(ctx, k, time.Hour)
			require.NoError(t, err)
			l.KeepAlive()
			locks = append(locks, l)
		}
		require.NoError(t, r.Close())
		for _, l := range locks {
			assert.Empty(t, b.Has(l.Key()))
			assert.Equal(t, redlock.ErrClosed, context.Cause(l.Context()))
			assert.ErrorIs(t, l.Release(ctx), redlock.ErrClosed)
			assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrClosed)
			l.KeepAlive()
		}
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(t, err, redlock.ErrClosed)
		_, err = r.Acquire(ctx, key, ttl)
		assert.ErrorIs(t, err, redlock.ErrClosed)
		assert.ErrorIs(t, r.Do(ctx, key, ttl, func(context.Context) error { return nil }), redlock.ErrClosed)
		assert.NoError(t, r.Close(), "again")
	})
}

func TestCloseIsBoundedWhenNodesHang(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		var clients []redis.UniversalClient
		for i, m := range b.Masters.All() {
			clients = append(clients, m.Client(func(o *redis.Options) {
				o.ReadTimeout = []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 0}[i]
			}))
		}
		r, err := redlock.New(clients, redlock.Config{})
		require.NoError(t, err)
		l, err := r.TryAcquire(ctx, key, time.Hour)
		require.NoError(t, err)
		l.KeepAlive()
		b.Settle()
		b.Stall(0, 1, 2, 3)
		assert.LessOrEqual(t, virtual.Took(func() { require.NoError(t, r.Close()) }), virtual.NodeTimeout+5*time.Second, "go-redis' default")
		assert.Equal(t, redlock.ErrClosed, context.Cause(l.Context()))
		b.Resume(0, 1, 2, 3)
	})
}

func TestCloseEndsWaits(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, time.Hour, 0, 1, 2)
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
		require.NoError(t, err)
		waited := make(chan error, 2)
		go func() { _, err := r.Acquire(ctx, key, ttl); waited <- err }()
		go func() {
			waited <- r.Do(ctx, "other", ttl, func(ctx context.Context) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		time.Sleep(time.Minute)
		require.NoError(t, r.Close())
		for range 2 {
			assert.ErrorIs(t, <-waited, redlock.ErrClosed)
		}
		b.Settle()
		assert.Empty(t, b.Has("other"))
	})
}

// If a caller gets its lock while Close begins, the lock is released. A caller that does not get
// one leaves nothing.
func TestCloseRacesWithEverything(t *testing.T) {
	for range 20 {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
			require.NoError(t, err)
			b.Delay(time.Millisecond, 0) // without this delay no time would ever pass
			const callers = 16
			done := make(chan error, callers)
			for i := range callers {
				go func() {
					for {
						l, err := r.Acquire(ctx, string(rune('a'+i%4)), time.Hour)
						if err != nil {
							done <- err
							return
						}
						if i%2 == 0 {
							l.KeepAlive()
						}
						if err := l.Release(ctx); err != nil {
							done <- err
							return
						}
					}
				}()
			}
			time.Sleep(10 * time.Millisecond)
			require.NoError(t, r.Close())
			for range callers {
				err := <-done
				assert.True(t, errors.Is(err, redlock.ErrClosed), "%v", err)
			}
			time.Sleep(time.Second)
			for _, k := range []string{"a", "b", "c", "d"} {
				assert.Empty(t, b.Has(k))
			}
		})
	}
}

// The clients that Open makes belong to the Redlock.
func TestOpenClosesItsClients(t *testing.T) {
	masters := redlocktest.Start(t, 3)
	r, err := redlock.Open(masters.URLs(), redlock.Config{})
	require.NoError(t, err)
	_, err = r.TryAcquire(ctx, key, time.Hour)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, m := range masters.All() {
		assert.False(t, m.Miniredis().Exists(key))
	}
}

func TestAcquireTakesAClosedClientForAFailedNode(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		clients := b.Masters.Clients()
		r, err := redlock.New(clients, redlock.Config{})
		require.NoError(t, err)
		require.NoError(t, clients[0].Close())
		l, err := r.TryAcquire(ctx, key, ttl)
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, clients[1].Close())
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NoError(t, r.Close())
	})
}

func TestReleaseDuringCloseEndsTheLock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
		require.NoError(t, err)
		l, err := r.TryAcquire(ctx, key, time.Hour)
		require.NoError(t, err)
		b.Settle()
		b.Delay(20*time.Millisecond, 20*time.Millisecond)
		go func() { _, _ = r.TryAcquire(ctx, "other", ttl) }() // Close waits for it
		time.Sleep(time.Millisecond)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			assert.NoError(t, r.Close())
		}()
		time.Sleep(time.Millisecond)
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrClosed)
		assert.Error(t, l.Context().Err(), "whatever Release returned")
		<-closed
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
	})
}
