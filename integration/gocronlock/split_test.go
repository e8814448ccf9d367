package gocronlock_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/integration/gocronlock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Each of three instances gets another one of three masters. After this one of them gets the lock.
func TestLockAfterSplitVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		var lockers []*gocronlock.Locker
		var slow []*redlocktest.Path
		for i := range 3 {
			var clients []redis.UniversalClient
			for j, m := range masters.All() {
				path := m.Path()
				clients = append(clients, path.Client())
				if i != j {
					slow = append(slow, path)
				}
			}
			locks, err := redlock.New(clients, redlock.Config{})
			require.NoError(t, err)
			defer locks.Close()
			warm, err := locks.TryAcquire(t.Context(), "warm", ttl)
			require.NoError(t, err)
			require.NoError(t, warm.Release(t.Context()))
			locker, err := gocronlock.NewLocker(locks, gocronlock.Config{})
			require.NoError(t, err)
			lockers = append(lockers, locker)
		}
		for _, path := range slow {
			path.Hold(true, false)
		}
		var wg sync.WaitGroup
		var locked atomic.Int32
		for _, locker := range lockers {
			wg.Go(func() {
				if _, err := locker.Lock(t.Context(), key); err == nil {
					locked.Add(1)
				}
			})
		}
		synctest.Wait()
		for i, m := range masters.All() {
			assert.True(t, m.Miniredis().Exists(key), i)
		}
		for _, path := range slow {
			path.Heal()
		}
		wg.Wait()
		assert.EqualValues(t, 1, locked.Load())
	})
}
