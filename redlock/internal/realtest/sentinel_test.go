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

// One node of three is a master under a Sentinel. Locks are granted, extended and released while it
// fails over, and its new master takes part afterwards. TestMain checks that no goroutine is left.
func TestRealAcquireWhileASentinelFailsOver(t *testing.T) {
	f := startFleet(t, 2)
	s := redisserver.StartSentinel(t)
	clients := append([]redis.UniversalClient{s.Client()}, f.clients()...)
	r := f.redlockOf(clients, redlock.Config{})

	before := f.acquire(r, "before", time.Hour)
	assert.True(t, granted(f.round("acquire", "before")), "the Sentinel's master takes part")
	old, err := s.Master()
	require.NoError(t, err)
	require.Equal(t, before.Value(), old.Client().Get(f.ctx, "before").Val())

	failedOver := make(chan error, 1)
	go func() {
		failedOver <- s.AwaitFailover(func() error {
			old.Kill()
			return nil
		})
	}()
	for during := 0; ; during++ {
		f.cycle(r, "during")
		require.NoError(t, before.Extend(f.ctx, time.Hour))
		select {
		case err = <-failedOver:
		case <-time.After(10 * time.Millisecond): // so that the loop does not saturate the machine
			continue
		}
		break
	}
	require.NoError(t, err)

	f.allGrantAgain(r, "after")
	master, err := s.Master()
	require.NoError(t, err)
	require.NotEqual(t, old.Addr(), master.Addr())
	promoted := master.Client()
	require.NoError(t, f.release(before))
	for _, k := range []string{"before", "during", "after"} {
		f.gone(k)
		f.eventually("nothing is left on the promoted one", func() bool {
			return promoted.Exists(f.ctx, k).Val() == 0
		})
	}
}

// A Sentinel that does not answer makes its node a failed minority.
func TestRealAcquireWithoutTheSentinel(t *testing.T) {
	f := startFleet(t, 2)
	unmanaged := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "main",
		SentinelAddrs: []string{redisserver.NewLink(t, f.servers[0].Addr()).Addr()}, // a Redis, not a Sentinel
	})
	t.Cleanup(func() { assert.NoError(t, unmanaged.Close()) })
	r := f.redlockOf(append(f.clients(), unmanaged), redlock.Config{})
	f.cycle(r, key)
	f.gone(key)
}

// A deposed master does not let its Sentinel make it a replica, and lives on. When the Sentinel
// announces another master, go-redis closes the connections of its pool, but not its subscriptions.
// The wait subscribes to the new master.
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
