package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// The application's own commands on the same client find the master back. The lane, which
// would dial it within half a second, need not wait for that.
func TestAcquireAsksAMasterAgainOnceAnyDialWorks(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var nodes []redis.UniversalClient
		for _, m := range b.Masters.All() {
			nodes = append(nodes, m.Client(func(o *redis.Options) { o.DialerRetries, o.MaxRetries, o.PoolSize = 1, -1, 1000 }))
		}
		r, err := redlock.New(nodes, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		cycle := func() (on []int) {
			l, err := r.TryAcquire(ctx, key, ttl)
			require.NoError(b, err)
			b.Settle()
			on = b.Has(key)
			require.NoError(b, l.Release(ctx))
			b.Settle()
			return on
		}
		b.Masters.Kill(0)
		for range 2250 {
			cycle()
			time.Sleep(time.Millisecond)
		}
		require.NoError(b, b.Masters.Restart(0))
		assert.Equal(b, []int{1, 2}, cycle(), "a pause")
		require.NoError(b, nodes[0].Ping(ctx).Err())
		b.Settle()
		assert.Equal(b, []int{0, 1, 2}, cycle())
	})
}
