package realtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// clustered is a fleet of two plain masters and a Cluster. The Cluster is the third node, and the
// first in the order of New.
type clustered struct {
	*fleet
	cluster *redisserver.Cluster
	client  *redis.ClusterClient // the test's own client
}

func startClustered(t *testing.T, shards int, opts ...redisserver.Option) *clustered {
	t.Helper()
	f := startFleet(t, 2)
	c := &clustered{fleet: f, cluster: redisserver.StartCluster(t, shards, opts...)}
	c.client = c.cluster.Client()
	return c
}

func (c *clustered) redlock(cfg redlock.Config) *redlock.Redlock {
	c.Helper()
	return c.redlockOf(append([]redis.UniversalClient{c.cluster.Client()}, c.clients()...), cfg)
}

// shard returns the index of the key's master in the Cluster, as it was formed.
func (c *clustered) shard(key string) int {
	c.Helper()
	slot, err := c.client.ClusterKeySlot(c.ctx, key).Result()
	require.NoError(c, err)
	n := len(c.cluster.Servers())
	for i := range n {
		if int(slot) < (i+1)*redisserver.Slots/n {
			return i
		}
	}
	return n - 1
}

// keys returns so many keys for each shard.
func (c *clustered) keys(each int) (byShard [][]string) {
	c.Helper()
	byShard = make([][]string, len(c.cluster.Servers()))
	for i, missing := 0, each*len(byShard); missing > 0; i++ {
		k := fmt.Sprintf("key %d", i)
		if s := c.shard(k); len(byShard[s]) < each {
			byShard[s] = append(byShard[s], k)
			missing--
		}
	}
	return byShard
}

// goneEverywhere waits until the key is on no plain master and not in the Cluster.
func (c *clustered) goneEverywhere(key string) {
	c.Helper()
	c.gone(key, c.all()...)
	c.eventually("the Cluster has nothing of "+key, func() bool {
		n, err := c.client.Exists(c.ctx, key).Result()
		return err == nil && n == 0
	})
}

// vote returns the Cluster's vote in the first round of an operation on a key.
func (c *clustered) vote(op, key string) quorum.Vote {
	c.Helper()
	return c.round(op, key).Nodes[0].Vote
}

// A Cluster is one node among three, whichever shard a key is on, with a hash tag and without. A
// Cluster of one master is a node too.
func TestRealAcquireOnACluster(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			c := startClustered(t, shards)
			r, other := c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
			keys := []string{"{user:1}:orders", "{user:1}:mail", "a{b}c", "{}", "}{", "ключ", "sp ace"}
			for _, some := range c.keys(3) {
				keys = append(keys, some...)
			}
			var locks []*redlock.Lock
			for _, k := range keys {
				l := c.acquire(r, k, ttl)
				require.Equal(t, quorum.Granted, c.vote("acquire", k), k)
				require.Equal(t, l.Value(), c.client.Get(c.ctx, k).Val(), k)
				locks = append(locks, l)
			}
			for _, l := range locks {
				_, err := other.TryAcquire(c.ctx, l.Key(), ttl)
				require.ErrorIs(t, err, redlock.ErrHeld)
				require.NoError(t, l.Extend(c.ctx, time.Minute))
				require.Equal(t, quorum.Granted, c.vote("extend", l.Key()), l.Key())
			}
			for _, l := range locks {
				require.NoError(t, c.release(l))
				require.Equal(t, quorum.Granted, c.vote("release", l.Key()), l.Key())
				c.goneEverywhere(l.Key())
			}

			// Many callers share batches, which span the shards.
			done := make(chan error, len(keys))
			for _, k := range keys {
				go func() {
					for range 20 {
						l, err := r.TryAcquire(c.ctx, k, ttl)
						if err == nil {
							err = l.Release(c.ctx)
						}
						if err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range keys {
				require.NoError(t, <-done)
			}
			for _, k := range keys {
				c.goneEverywhere(k)
			}
		})
	}
}

// A Cluster's vote counts. With it and one plain master there is a quorum. If it and another node
// refuse, the result is ErrHeld.
func TestRealAcquireIsDecidedByACluster(t *testing.T) {
	c := startClustered(t, 1)
	r := c.redlock(redlock.Config{})
	c.kill(0)
	c.cycle(r, key)
	require.NoError(t, c.client.Set(c.ctx, key, "somebody else's", time.Minute).Err())
	require.NoError(t, c.admin[1].Set(c.ctx, key, "somebody else's", time.Minute).Err())
	_, err := r.TryAcquire(c.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	assert.Contains(t, fmt.Sprint(err), "cluster "+c.cluster.Servers()[0].Addr())
	assert.Equal(t, "somebody else's", c.client.Get(c.ctx, key).Val())
}

// The master of one shard is killed. For its keys the Cluster is a failed minority, until the
// master returns.
func TestRealAcquireWhileAShardIsKilled(t *testing.T) {
	c := startClustered(t, 3, redisserver.Config("cluster-require-full-coverage no"))
	r := c.redlock(redlock.Config{})
	keys := c.keys(2)
	for shard := range keys {
		c.cycle(r, keys[shard][0])
	}
	held := c.acquire(r, keys[1][1], time.Hour)
	c.round("acquire", held.Key())
	dead := c.cluster.Servers()[1]
	dead.Kill()

	for range 3 {
		c.cycle(r, keys[1][0])
		require.NoError(t, held.Extend(c.ctx, time.Hour))
	}
	// The other shards are still reached.
	for _, shard := range []int{0, 2} {
		c.allGrantAgain(r, keys[shard][1])
	}
	require.NoError(t, c.release(held))

	require.NoError(t, dead.Restart())
	require.NoError(t, c.cluster.AwaitOK())
	for shard := range keys {
		c.allGrantAgain(r, keys[shard][0])
		c.goneEverywhere(keys[shard][0])
		c.goneEverywhere(keys[shard][1])
	}
}

// migrate moves the slot of a key, with the key if it exists, from the key's master to the next
// one, as redis-cli --cluster reshard does.
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

// A slot moves between two shards to which a Redlock has pinned connections. A command with the
// reply MOVED was not executed, so it is sent to the new master. Meanwhile the other two nodes are
// a quorum. A held lock keeps its key.
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
	for _, key := range []string{free, taken} { // the last release may still be on its way
		c.eventually("it is free on its shard", func() bool {
			n, err := c.client.Exists(c.ctx, key).Result()
			return err == nil && n == 0
		})
	}

	l := c.acquire(r, taken, time.Hour)
	c.eventually("the Cluster has it", func() bool { return c.client.Get(c.ctx, taken).Val() == l.Value() })
	to := c.migrate(taken)
	c.migrate(free)

	c.cycle(r, free) // the first to get MOVED
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
