package realtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/redlock"
)

// Many keys on every shard at once: each has a channel in its own slot.
func TestRealAcquireOfManyKeysIsWokenByACluster(t *testing.T) {
	c := startClustered(t, 3)
	var log spy.Log
	holder, r := c.redlock(redlock.Config{}), c.redlock(redlock.Config{Logger: log.Logger()})
	var keys []string
	for _, some := range c.keys(6) {
		keys = append(keys, some...)
	}
	locks, waits := map[string]*redlock.Lock{}, map[string]*waiting{}
	for _, k := range keys {
		locks[k] = c.acquire(holder, k, time.Hour)
		c.round("acquire", k)
		waits[k] = c.wait(r, k, ttl)
	}
	for _, k := range keys {
		c.inTheQueue(k, 1)
	}
	c.heardInCluster(len(keys))
	// All connections break, and are restored with all channels.
	for _, s := range c.cluster.Servers() {
		require.NoError(t, s.Client().ClientKillByFilter(c.ctx, "TYPE", "pubsub").Err())
	}
	c.heardInCluster(len(keys))
	for _, k := range keys {
		require.NoError(t, c.release(locks[k]))
		require.NoError(t, c.release(waits[k].got()))
	}
	assert.Zero(t, log.Says("\n"), log.String())
	c.nobodyIsLeft()
}

// A slot moves while a client waits for a key in it. The client gets the lock, and is in the
// Cluster's queue again.
func TestRealAcquireWaitsWhileASlotMovesAndAConnectionBreaks(t *testing.T) {
	c := startClustered(t, 2)
	var log spy.Log
	cfg := redlock.Config{Logger: log.Logger()}
	holder, first, second := c.redlock(redlock.Config{}), c.redlock(cfg), c.redlock(cfg)
	l := c.acquire(holder, key, time.Hour)
	c.round("acquire", key)
	one := c.wait(first, key, ttl)
	c.inTheQueue(key, 1)
	two := c.wait(second, key, ttl)
	c.inTheQueue(key, 2)
	c.heardInCluster(2)

	from, to := c.moveSlot(key)
	c.eventually("nobody listens at the old place", func() bool { return c.channels()[from] == 0 })
	// The shard has no subscribed channels left. Its connection breaks.
	require.NoError(t, c.cluster.Servers()[from].Client().ClientKillByFilter(c.ctx, "TYPE", "pubsub").Err())
	c.eventually("both listen at the new place", func() bool { return c.channels()[to] == 2 })
	c.inTheQueue(key, 2)
	require.NoError(t, c.release(l))
	require.NoError(t, c.release(one.got()))
	require.NoError(t, c.release(two.got()))
	assert.Zero(t, log.Says(refusesToQueue), log.String())
	c.goneEverywhere(key)
	c.nobodyIsLeft()
}
