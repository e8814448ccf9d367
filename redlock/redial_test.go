package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// The application's own commands on the same client find the master back. The lane, which
// would dial it within half a second, need not wait for that.
func TestAcquireAsksAMasterAgainOnceAnyDialWorks(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		var nodes []redis.UniversalClient
		for _, m := range b.masters.All() {
			nodes = append(nodes, m.Client(func(o *redis.Options) { o.DialerRetries, o.MaxRetries, o.PoolSize = 1, -1, 1000 }))
		}
		r, err := redlock.New(nodes, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		cycle := func() (on []int) {
			l, err := r.TryAcquire(ctx, key, ttl)
			require.NoError(b, err)
			b.settle()
			on = b.has(key)
			require.NoError(b, l.Release(ctx))
			b.settle()
			return on
		}
		b.masters.Kill(0)
		for range 2250 {
			cycle()
			time.Sleep(time.Millisecond)
		}
		require.NoError(b, b.masters.Restart(0))
		assert.Equal(b, []int{1, 2}, cycle(), "a pause")
		require.NoError(b, nodes[0].Ping(ctx).Err())
		b.settle()
		assert.Equal(b, []int{0, 1, 2}, cycle())
	})
}
