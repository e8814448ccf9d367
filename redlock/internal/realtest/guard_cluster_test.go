package realtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/port"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/quorum"
)

// replica adds a replica of a shard's master to the Cluster, and waits until it is in sync.
func (c *clustered) replica(shard int) *redisserver.Server {
	c.Helper()
	bus, err := port.Reserve()
	require.NoError(c, err)
	c.Cleanup(bus.Release)
	s := redisserver.Start(c, 1, redisserver.Config(
		"cluster-enabled yes", fmt.Sprint("cluster-port ", bus.Port), "cluster-config-file nodes.conf",
		"cluster-announce-ip 127.0.0.1", "cluster-node-timeout 5000"))[0]
	client, master := s.Client(), c.cluster.Servers()[shard].Client()
	require.NoError(c, master.Do(c.ctx, "cluster", "meet", "127.0.0.1", s.Port(), bus.Port).Err())
	id, err := master.ClusterMyID(c.ctx).Result()
	require.NoError(c, err)
	c.eventually("the replica knows its master", func() bool { return client.ClusterReplicate(c.ctx, id).Err() == nil })
	c.eventually("the replica is in sync", func() bool {
		info, err := client.Info(c.ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	c.eventually("all shards know the replica", func() bool {
		for _, s := range c.cluster.Servers() {
			nodes, err := s.Client().ClusterNodes(c.ctx).Result()
			if err != nil || !strings.Contains(nodes, " slave "+id+" ") {
				return false
			}
		}
		return true
	})
	return s
}

// Each shard of a Cluster is verified for itself. A shard that fails over does not vote on its
// keys, and the others vote on theirs.
func TestRealGuardQuarantinesAShardThatFailsOver(t *testing.T) {
	c := startClustered(t, 3)
	replica := c.replica(1)
	r := c.redlock(realGuarded)
	keys := c.keys(1)
	for _, shard := range keys {
		c.counted(r, shard[0])
	}
	other, failing := keys[0][0], keys[1][0]
	require.Len(t, r.Nodes()[0].Servers, 3)
	c.notNew(replica, realGuard)

	before := time.Now()
	require.NoError(t, replica.Client().Do(c.ctx, "cluster", "failover", "takeover").Err())
	// The old master goes on voting until it learns of that.
	c.eventually("the new master does not vote", func() bool {
		assert.Equal(t, quorum.Granted, c.ask(r, other).Nodes[0].Vote)
		return strings.Contains(fmt.Sprint(c.ask(r, failing).Nodes[0].Err), "another server took over")
	})
	for _, s := range r.Nodes()[0].Servers {
		if s.Addr == replica.Addr() {
			assert.ErrorContains(t, s.Err, "another server took over")
		} else if s.Addr != c.cluster.Servers()[1].Addr() {
			assert.NoError(t, s.Err)
		}
	}
	c.eventually("its votes count again", func() bool {
		assert.Equal(t, quorum.Granted, c.ask(r, other).Nodes[0].Vote)
		return c.ask(r, failing).Nodes[0].Vote == quorum.Granted
	})
	assert.False(t, time.Now().Before(before.Add(realGuard)), "too early")
}
