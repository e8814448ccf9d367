package waitqueue_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A node's address starts to lead to another server, and the old server lives on. It may be a
// deposed master that its Sentinel cannot reach, or a server behind an address that has moved. The
// lane's connection breaks, but not the subscription's. The new server still wakes the waiter.
func TestAcquireIsWokenByTheServerThatTookOver(t *testing.T) {
	const guard = 10 * time.Second
	for name, cfg := range map[string]redlock.Config{
		"without the guard": {},
		"with the guard":    {RestartGuard: guard},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 2, redlock.Config{}, func(b *virtual.Bed) {
				old, now := b.Masters.Master(0), b.Masters.Master(1)
				path := old.Path()
				one := func(client redis.UniversalClient) *redlock.Redlock {
					r, err := redlock.New([]redis.UniversalClient{client}, cfg)
					require.NoError(b, err)
					b.Cleanup(func() { require.NoError(b, r.Close()) })
					return r
				}
				p := &virtual.Party{Redlock: one(path.Client()), Bed: b}
				time.Sleep(2 * guard) // the masters have been up for long
				b.Steal(key, time.Hour, 0, 1)
				w := p.Wait(key, time.Second)
				time.Sleep(1500 * time.Millisecond)
				require.Len(b, b.Queued(0, key), 1)

				path.Lead(now)
				old.LoseRequests(1)
				_, err := p.TryAcquire(ctx, "lost with its connection", time.Second)
				require.ErrorIs(b, err, redlock.ErrNoQuorum)
				if l, err := p.TryAcquire(ctx, "asked of the new server", time.Second); err == nil {
					require.NoError(b, l.Release(ctx))
				}
				time.Sleep(2*guard + 15*time.Second) // until it has looked again
				require.Len(b, b.Queued(1, key), 1)
				admin := one(now.Client())
				seen, err := admin.Inspect(ctx, key)
				require.NoError(b, err)
				released := time.Now()
				_, err = admin.ForceReleaseForeign(ctx, seen)
				require.NoError(b, err)
				l := w.Hold()
				assert.Zero(b, w.Got.Sub(released))
				b.Release(l)
			})
		})
	}
}

// Subscriptions to a server are kept when only the lane makes a new connection to it.
func TestAcquireKeepsASubscriptionBeyondTheLanesConnection(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, time.Hour)
		w := p.Wait(key, ttl)
		time.Sleep(1500 * time.Millisecond)
		for _, m := range b.Masters.All() {
			m.LoseRequests(1)
		}
		tape := b.Record(p)
		_, err := p.TryAcquire(ctx, "lost with its connection", time.Second)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		again, err := p.TryAcquire(ctx, "asked on the next", time.Second)
		require.NoError(b, err)
		require.NoError(b, again.Release(ctx))
		b.Settle()
		assert.Zero(b, tape.Count()[p.Name]["SUBSCRIBE"])
		b.Release(l)
		b.Release(w.Hold())
	})
}
