package realtest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// A deposed master does not let its Sentinel make it a replica, and lives on. go-redis gives
// up the connections of its pool when the Sentinel says that there is another master, but not
// those that are subscribed to something. The wait comes to listen to the new master.
func TestRealAcquireLeavesADeposedMaster(t *testing.T) {
	f := startFleet(t, 1)
	s := redisserver.StartSentinel(t)
	one := func() *redlock.Redlock {
		return f.redlockOf([]redis.UniversalClient{s.Client()}, redlock.Config{})
	}
	holder, r := one(), one()
	first, err := s.Master()
	require.NoError(t, err)
	replica, err := s.Replica()
	require.NoError(t, err)
	old, now := first.Client(), replica.Client()
	queued := func(c *redis.Client) bool { return c.ZCount(f.ctx, queueKey(key), tickets, "+inf").Val() == 1 }
	heard := func(c *redis.Client) int { return len(c.PubSubChannels(f.ctx, "redlock:wake:*").Val()) }

	l := f.acquire(holder, key, time.Hour)
	w := f.wait(r, key, ttl)
	f.eventually("it waits", func() bool { return queued(old) && heard(old) == 1 && queued(now) })
	require.NoError(t, old.Do(f.ctx, "acl", "setuser", "default", "-replicaof", "-slaveof").Err())
	require.NoError(t, s.Failover())

	f.eventually("it listens to the new master", func() bool { return heard(now) == 1 && queued(now) })
	f.eventually("it does not listen to the old one", func() bool { return heard(old) == 0 })
	assert.Contains(t, old.Info(f.ctx, "replication").Val(), "role:master", "it knows nothing of its end")
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
}
