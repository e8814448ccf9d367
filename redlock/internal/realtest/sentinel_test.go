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

// One node of three is a master under a Sentinel. Locks go
// on being granted, extended and released while it fails over, and afterwards
// its new master takes part. That no goroutine is left is TestMain's to see.
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
		case <-time.After(10 * time.Millisecond): // not to saturate the machine
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
		f.gone(k, f.all()...)
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
	f.gone(key, f.all()...)
}
