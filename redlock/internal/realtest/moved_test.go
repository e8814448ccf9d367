package realtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// migrate moves the slot of a key, and the key if it is there, from the key's
// master to the next one, as redis-cli --cluster reshard does.
func (c *clustered) migrate(key string) (to int) {
	c.Helper()
	servers := c.cluster.Servers()
	from := c.shard(key)
	to = (from + 1) % len(servers)
	source, target := servers[from].Client(), servers[to].Client()
	slot, err := source.ClusterKeySlot(c.ctx, key).Result()
	require.NoError(c, err)
	id := func(i int) string {
		v, err := servers[i].Client().ClusterMyID(c.ctx).Result()
		require.NoError(c, err)
		return v
	}
	require.NoError(c, target.Do(c.ctx, "cluster", "setslot", slot, "importing", id(from)).Err())
	require.NoError(c, source.Do(c.ctx, "cluster", "setslot", slot, "migrating", id(to)).Err())
	require.NoError(c, source.Do(c.ctx, "migrate", "127.0.0.1", servers[to].Port(), key, 0, 10000).Err())
	require.NoError(c, target.Do(c.ctx, "cluster", "setslot", slot, "node", id(to)).Err())
	for i := range servers {
		if i != to {
			require.NoError(c, servers[i].Client().Do(c.ctx, "cluster", "setslot", slot, "node", id(to)).Err())
		}
	}
	return to
}

// A slot moves between two shards to which a Redlock has pinned connections:
// MOVED is not executed, so it is asked of the new master, and meanwhile the
// other two nodes are a quorum. A lock that was held keeps its key.
func TestRealAcquireWhileASlotMoves(t *testing.T) {
	c := startClustered(t, 3)
	r, other := c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
	keys := c.keys(2)
	for shard := range keys { // connections to every shard
		for _, k := range keys[shard] {
			c.cycle(r, k)
			c.cycle(other, k)
		}
	}
	free, taken := keys[0][0], keys[1][0]
	c.eventually("it is free on its shard", func() bool {
		n, err := c.client.Exists(c.ctx, free).Result()
		return err == nil && n == 0
	})

	l := c.acquire(r, taken, time.Hour)
	c.eventually("the Cluster has it", func() bool { return c.client.Get(c.ctx, taken).Val() == l.Value() })
	to := c.migrate(taken)
	c.migrate(free)

	c.cycle(r, free) // the first to hear MOVED
	c.allGrantAgain(r, free)
	c.goneEverywhere(free)
	c.allGrantAgain(other, free)

	_, err := other.TryAcquire(c.ctx, taken, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.NoError(t, l.Extend(c.ctx, 2*time.Hour))
	moved := c.cluster.Servers()[to].Client()
	c.eventually("the new master has extended it", func() bool {
		require.NoError(t, l.Extend(c.ctx, 3*time.Hour))
		return moved.PTTL(c.ctx, taken).Val() > 2*time.Hour
	})
	assert.Equal(t, l.Value(), moved.Get(c.ctx, taken).Val())
	require.NoError(t, c.release(l))
	c.goneEverywhere(taken)
	c.goneEverywhere(free)
}
