package realtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/redlock"
)

// inTheQueue waits until so many clients are in the queue for a key, in the Cluster and on the
// plain masters.
func (c *clustered) inTheQueue(key string, n int64) {
	c.Helper()
	c.queued(key, n, c.all()...)
	c.eventually(fmt.Sprintf("the Cluster has %d in the queue for %s", n, key), func() bool {
		return c.client.ZCount(c.ctx, queueKey(key), tickets, "+inf").Val() == n
	})
}

// nobodyIsLeft waits until there is no queue anywhere.
func (c *clustered) nobodyIsLeft() {
	c.Helper()
	c.nobodyWaits(c.all()...)
	for i, s := range c.cluster.Servers() {
		client := s.Client()
		c.eventually(fmt.Sprintf("shard %d has no queue", i), func() bool {
			left, err := client.Keys(c.ctx, "redlock:queue*").Result()
			return err == nil && len(left) == 0
		})
	}
}

// channels returns how many shard channels have subscribers on each of the Cluster's masters.
func (c *clustered) channels() (n []int) {
	c.Helper()
	for _, s := range c.cluster.Servers() {
		all, err := s.Client().PubSubShardChannels(c.ctx, "redlock:wake:*").Result()
		require.NoError(c, err)
		n = append(n, len(all))
	}
	return n
}

// heardInCluster waits until there are subscriptions for so many keys on the Cluster.
func (c *clustered) heardInCluster(keys int) {
	c.Helper()
	c.eventually(fmt.Sprintf("%d channels are listened to", keys), func() bool {
		sum := 0
		for _, n := range c.channels() {
			sum += n
		}
		return sum == keys
	})
}

// A Cluster wakes waiters by its sharded pub/sub, on a channel in the key's slot. The Cluster and
// one plain master are a quorum.
func TestRealAcquireIsWokenByACluster(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			c := startClustered(t, shards)
			holder := c.redlock(redlock.Config{})
			clients := append([]redis.UniversalClient{c.cluster.Client()}, c.clients()...)
			r := c.redlockOf(clients, redlock.Config{})
			other := c.redlock(redlock.Config{})
			keys := []string{"{user:1}:orders", "a{b}c", "{}", "}{", "ключ", "sp ace"}
			for _, some := range c.keys(3) {
				keys = append(keys, some...)
			}
			for i, k := range keys {
				l := c.acquire(holder, k, time.Hour)
				c.round("acquire", k)
				first := c.wait(r, k, ttl)
				c.inTheQueue(k, 1)
				second := c.wait(other, k, ttl)
				c.inTheQueue(k, 2)
				if i == 0 {
					c.heardInCluster(2)
				}
				require.NoError(t, c.release(l))
				require.NoError(t, c.release(first.got()))
				require.NoError(t, c.release(second.got()))
				c.goneEverywhere(k)
			}
			c.nobodyIsLeft()
		})
	}
}

// Only the Cluster and a master without subscribers are left: the Cluster's wake-ups count.
func TestRealAcquireIsWokenByAClusterAlone(t *testing.T) {
	c := startClustered(t, 3)
	holder, r := c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
	c.kill(1)
	l := c.acquire(holder, key, time.Hour)
	w := c.wait(r, key, ttl)
	c.eventually("it is in both queues", func() bool {
		return c.client.ZCount(c.ctx, queueKey(key), tickets, "+inf").Val() == 1 &&
			c.admin[0].ZCount(c.ctx, queueKey(key), tickets, "+inf").Val() == 1
	})
	c.heardInCluster(1)
	require.NoError(t, c.release(l))
	require.NoError(t, c.release(w.got()))
	stats := c.cluster.Servers()[c.shard(key)].Client().InfoMap(c.ctx, "commandstats").Val()
	assert.Contains(t, stats["Commandstats"], "cmdstat_spublish")
	assert.NotContains(t, stats["Commandstats"], "cmdstat_publish")
	c.gone(key, 0)
	c.nobodyWaits(0)
}

// moveSlot moves a key's slot, with everything in it, to the next master.
func (c *clustered) moveSlot(key string) (from, to int) {
	c.Helper()
	servers := c.cluster.Servers()
	from = c.shard(key)
	to = (from + 1) % len(servers)
	slot := int(c.client.ClusterKeySlot(c.ctx, key).Val())
	source, target := servers[from].Client(), servers[to].Client()
	fromID, toID := source.ClusterMyID(c.ctx).Val(), target.ClusterMyID(c.ctx).Val()
	require.NoError(c, target.Do(c.ctx, "cluster", "setslot", slot, "importing", fromID).Err())
	require.NoError(c, source.Do(c.ctx, "cluster", "setslot", slot, "migrating", toID).Err())
	c.eventually("the slot is empty", func() bool {
		for _, k := range source.ClusterGetKeysInSlot(c.ctx, slot, 100).Val() {
			require.NoError(c, source.Do(c.ctx, "migrate", "127.0.0.1", servers[to].Port(), k, 0, 10000).Err())
		}
		if len(source.ClusterGetKeysInSlot(c.ctx, slot, 1).Val()) > 0 {
			return false
		}
		require.NoError(c, target.Do(c.ctx, "cluster", "setslot", slot, "node", toID).Err())
		return source.Do(c.ctx, "cluster", "setslot", slot, "node", toID).Err() == nil
	})
	for i, s := range servers {
		if i != from && i != to {
			require.NoError(c, s.Client().Do(c.ctx, "cluster", "setslot", slot, "node", toID).Err())
		}
	}
	return from, to
}

// A slot moves, with its queue, while two clients wait for a key in it. Both get the lock.
func TestRealAcquireWaitsWhileASlotMoves(t *testing.T) {
	c := startClustered(t, 2)
	holder, first, second := c.redlock(redlock.Config{}), c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
	l := c.acquire(holder, key, time.Hour)
	c.round("acquire", key)
	one := c.wait(first, key, ttl)
	c.inTheQueue(key, 1)
	two := c.wait(second, key, ttl)
	c.inTheQueue(key, 2)
	c.heardInCluster(2)

	from, to := c.moveSlot(key)
	c.eventually("nobody listens at the old place", func() bool { return c.channels()[from] == 0 })
	assert.EqualValues(t, 2, c.cluster.Servers()[to].Client().ZCount(c.ctx, queueKey(key), tickets, "+inf").Val())
	require.NoError(t, c.release(l))
	require.NoError(t, c.release(one.got()))
	require.NoError(t, c.release(two.got()))
	c.goneEverywhere(key)
	c.nobodyIsLeft()
}

// On a Cluster, waking needs other rights.
func TestRealAcquireWithTheRightsToWakeOnACluster(t *testing.T) {
	c := startClustered(t, 2, redisserver.ACL(
		user("locker", append([]string{"+cluster|slots"}, minimalRights...)...),
		user("waker", append([]string{"+cluster|slots"}, shardRights...)...)))
	as := func(name string, log *spy.Log) *redlock.Redlock {
		client := c.cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = name, aclPassword })
		cfg := prefixed
		cfg.Logger = log.Logger()
		return c.redlockOf(append([]redis.UniversalClient{client}, c.clients()...), cfg)
	}
	for name, warnings := range map[string]int{"waker": 0, "locker": 1} {
		var log spy.Log
		holder, r := as(name, &spy.Log{}), as(name, &log)
		for i := range 4 {
			k := fmt.Sprint(name, i)
			l := c.acquire(holder, k, time.Hour)
			c.round("acquire", k)
			w := c.wait(r, k, ttl)
			if warnings == 0 {
				c.inTheQueue("lock:"+k, 1)
				c.eventually("it listens", func() bool { return c.channels()[c.shard("lock:"+k)] > 0 })
			} else {
				c.queued("lock:"+k, 1, c.all()...)
				c.eventually("the log tells", func() bool { return log.Says(refusesToQueue) == warnings })
			}
			require.NoError(t, c.release(l))
			require.NoError(t, c.release(w.got()))
			c.goneEverywhere("lock:" + k)
		}
		assert.Equal(t, warnings, log.Says(refusesToQueue))
		c.nobodyIsLeft()
	}
}
