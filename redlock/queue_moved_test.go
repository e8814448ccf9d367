package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A node's address comes to lead to another server, and the old one lives on: a deposed
// master that its Sentinel cannot reach, or a server behind an address that has moved. The
// lane's connection breaks, that on which wake-ups are heard does not. A wait is woken by the
// new server all the same.
func TestAWaitIsWokenByTheServerThatTookOver(t *testing.T) {
	const guard = 10 * time.Second
	for name, cfg := range map[string]redlock.Config{
		"without the guard": {},
		"with the guard":    {RestartGuard: guard},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 2, redlock.Config{}, func(b *bed) {
				old, now := b.masters.Master(0), b.masters.Master(1)
				path := old.Path()
				one := func(client redis.UniversalClient) *redlock.Redlock {
					r, err := redlock.New([]redis.UniversalClient{client}, cfg)
					require.NoError(b, err)
					b.Cleanup(func() { require.NoError(b, r.Close()) })
					return r
				}
				p := &party{Redlock: one(path.Client()), b: b}
				time.Sleep(2 * guard) // the masters have been up for long
				b.steal(key, time.Hour, 0, 1)
				w := p.wait(key, time.Second)
				time.Sleep(1500 * time.Millisecond)
				require.Len(b, b.queued(0, key), 1)

				path.Lead(now)
				old.LoseRequests(1)
				_, err := p.TryAcquire(ctx, "lost with its connection", time.Second)
				require.ErrorIs(b, err, redlock.ErrNoQuorum)
				if l, err := p.TryAcquire(ctx, "asked of the new server", time.Second); err == nil {
					require.NoError(b, l.Release(ctx))
				}
				time.Sleep(2*guard + 15*time.Second) // until it has looked again
				require.Len(b, b.queued(1, key), 1)
				admin := one(now.Client())
				seen, err := admin.Inspect(ctx, key)
				require.NoError(b, err)
				released := time.Now()
				_, err = admin.ForceReleaseForeign(ctx, seen)
				require.NoError(b, err)
				l := w.hold()
				assert.Zero(b, w.got.Sub(released))
				b.release(l)
			})
		})
	}
}

// Connections to one server are not given up when the lane alone makes a new one.
func TestASubscriptionOutlivesTheLanesConnection(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(holder, time.Hour)
		w := p.wait(key, ttl)
		time.Sleep(1500 * time.Millisecond)
		for _, m := range b.masters.All() {
			m.LoseRequests(1)
		}
		tape := b.record(p)
		_, err := p.TryAcquire(ctx, "lost with its connection", time.Second)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		again, err := p.TryAcquire(ctx, "asked on the next", time.Second)
		require.NoError(b, err)
		require.NoError(b, again.Release(ctx))
		b.settle()
		assert.Zero(b, tape.count()[p.name]["SUBSCRIBE"])
		b.release(l)
		b.release(w.hold())
	})
}
