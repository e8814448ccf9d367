package certmagiclock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/integration/certmagiclock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

const (
	key = "issue_cert_example.com"
	ttl = 10 * time.Second
)

func newLocks(t *testing.T, masters *redlocktest.Masters) *redlock.Redlock {
	t.Helper()
	locks, err := redlock.New(masters.Clients(), redlock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close()) })
	return locks
}

func newLocker(t *testing.T, masters *redlocktest.Masters) *certmagiclock.Locker {
	t.Helper()
	locker, err := certmagiclock.New(newLocks(t, masters), ttl)
	require.NoError(t, err)
	return locker
}

// forget deletes all keys on all masters.
func forget(masters *redlocktest.Masters) {
	for _, m := range masters.All() {
		m.Miniredis().FlushAll()
	}
}

func tryLock(t *testing.T, locker *certmagiclock.Locker) bool {
	t.Helper()
	locked, err := locker.TryLock(t.Context(), key)
	require.NoError(t, err)
	return locked
}

// Callers of two instances, some of the same one, get a name one after the other, for longer than
// the ttl.
func TestLockExcludesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		var held sync.Mutex
		var wg sync.WaitGroup
		for range 2 {
			locker := newLocker(t, masters)
			for range 3 {
				wg.Go(func() {
					assert.NoError(t, locker.Lock(t.Context(), key))
					assert.True(t, held.TryLock(), "two at a time")
					time.Sleep(3 * ttl)
					held.Unlock()
					assert.NoError(t, locker.Unlock(t.Context(), key))
				})
			}
		}
		wg.Wait()
	})
}

// Names do not wait for each other.
func TestLockOfOtherNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, redlocktest.StartVirtual(t, 3))
		require.NoError(t, locker.Lock(t.Context(), "one"))
		require.NoError(t, locker.Lock(t.Context(), "two"))
		require.NoError(t, locker.Unlock(t.Context(), "one"))
		require.NoError(t, locker.Unlock(t.Context(), "two"))
	})
}

// Lock waits as long as its context lasts, for another instance and for a caller of this one.
func TestLockEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		holder, other := newLocker(t, masters), newLocker(t, masters)
		require.NoError(t, holder.Lock(t.Context(), key))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := other.Lock(ctx, key)
		assert.ErrorIs(t, err, redlock.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.ErrorIs(t, holder.Lock(ctx, key), context.DeadlineExceeded)

		require.NoError(t, holder.Unlock(t.Context(), key))
		assert.True(t, tryLock(t, other))
	})
}

func TestTryLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		one, two := newLocker(t, masters), newLocker(t, masters)
		assert.True(t, tryLock(t, one))
		assert.False(t, tryLock(t, one))
		assert.False(t, tryLock(t, two))
		require.NoError(t, one.Unlock(t.Context(), key))
		assert.True(t, tryLock(t, two))

		masters.Kill(0, 1)
		locked, err := one.TryLock(t.Context(), "another")
		assert.False(t, locked)
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
	})
}

// Unlock works with a context that has ended, and when masters are away.
func TestUnlockDoesNotNeedItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		one, two := newLocker(t, masters), newLocker(t, masters)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, one.Lock(ctx, key))
		cancel()
		require.NoError(t, one.Unlock(ctx, key))

		require.NoError(t, two.Lock(t.Context(), key))
		masters.Kill(0, 1)
		assert.ErrorIs(t, two.Unlock(t.Context(), key), redlock.ErrNoQuorum)
		require.NoError(t, masters.Restart(0, 1))
		require.NoError(t, two.Lock(t.Context(), key))
	})
}

// A name whose lock was lost is not given to another caller of this process before it is unlocked,
// so that nobody unlocks the lock of another.
func TestUnlockAfterALossReleasesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		one, two := newLocker(t, masters), newLocker(t, masters)
		require.NoError(t, one.Lock(t.Context(), key))
		forget(masters)
		time.Sleep(ttl)
		assert.False(t, tryLock(t, one))
		second := make(chan error)
		go func() { second <- one.Lock(t.Context(), key) }()
		synctest.Wait()
		assert.ErrorIs(t, one.Unlock(t.Context(), key), redlock.ErrNotHeld)
		require.NoError(t, <-second)
		assert.False(t, tryLock(t, two))
		require.NoError(t, one.Unlock(t.Context(), key))
		assert.True(t, tryLock(t, two))
	})
}

// A lease that holds stays with the ttl of the Locker, whatever certmagic asks for.
func TestRenewLockLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		locker := newLocker(t, masters)
		require.NoError(t, locker.Lock(t.Context(), key))
		require.NoError(t, locker.RenewLockLease(t.Context(), key, 6*time.Hour))
		inspection, err := newLocks(t, masters).Inspect(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, redlock.VerdictHeld, inspection.Verdict())
		assert.LessOrEqual(t, inspection.Nodes[0].TTL, ttl)
		require.NoError(t, locker.Unlock(t.Context(), key))
	})
}

// The caller learns of a loss from RenewLockLease, which gets the lock again if nobody has it.
func TestRenewLockLeaseAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		one, two := newLocker(t, masters), newLocker(t, masters)
		require.NoError(t, one.Lock(t.Context(), key))

		forget(masters)
		require.True(t, tryLock(t, two))
		assert.ErrorIs(t, one.RenewLockLease(t.Context(), key, time.Minute), redlock.ErrHeld)
		require.NoError(t, two.Unlock(t.Context(), key))
		require.NoError(t, one.RenewLockLease(t.Context(), key, time.Minute))
		time.Sleep(3 * ttl)
		assert.False(t, tryLock(t, two), "what was got again is renewed too")

		masters.Kill(0, 1)
		assert.ErrorIs(t, one.RenewLockLease(t.Context(), key, time.Minute), redlock.ErrNoQuorum)
		time.Sleep(2 * ttl)
		assert.ErrorIs(t, one.RenewLockLease(t.Context(), key, time.Minute), redlock.ErrNoQuorum)
		assert.ErrorIs(t, one.Unlock(t.Context(), key), redlock.ErrExpired)
	})
}

// A lock whose validity is over is got again at once, though its keys live a little longer.
func TestRenewLockLeaseAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		locker := newLocker(t, masters)
		require.NoError(t, locker.Lock(t.Context(), key))
		masters.Kill(0, 1)
		time.Sleep(ttl - 50*time.Millisecond) // within the drift margin, 1 % and 2 ms
		require.NoError(t, masters.Restart(0, 1))
		require.NoError(t, locker.RenewLockLease(t.Context(), key, time.Minute))
		require.NoError(t, locker.Unlock(t.Context(), key))
	})
}

func TestMistakesAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newLocks(t, redlocktest.StartVirtual(t, 3))
		_, err := certmagiclock.New(nil, ttl)
		assert.ErrorContains(t, err, "locks is nil")
		_, err = certmagiclock.New(locks, time.Millisecond)
		assert.ErrorContains(t, err, "ttl")
		_, err = certmagiclock.Wrap(nil, locks, ttl)
		assert.ErrorContains(t, err, "storage is nil")
		_, err = certmagiclock.Wrap(&certmagic.FileStorage{}, nil, ttl)
		assert.ErrorContains(t, err, "locks is nil")

		locker, err := certmagiclock.New(locks, ttl)
		require.NoError(t, err)
		var none context.Context
		assert.ErrorContains(t, locker.Lock(none, key), "ctx is nil")
		assert.ErrorContains(t, locker.Lock(t.Context(), ""), "key is empty")
		for _, err := range []error{
			locker.Unlock(t.Context(), key),
			locker.RenewLockLease(t.Context(), key, time.Minute),
		} {
			assert.ErrorContains(t, err, "it is not locked")
		}
		_, err = locker.TryLock(none, key)
		assert.ErrorContains(t, err, "ctx is nil")
		stopped := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(stopped)
		assert.ErrorIs(t, locker.Lock(ctx, key), stopped)
	})
}
