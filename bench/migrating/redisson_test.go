package migrating_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// While we hold the key, RLock.tryLock does not answer false: the script fails, and Redisson throws.
// So do the watchdog and unlock of a thread whose lock has expired, and whose key is now ours. None
// of them touches our key.
func TestRedissonThrowsWhileWeHoldTheKey(t *testing.T) {
	m := startMasters(t, 1)
	ours, err := m.ours(redlock.Config{}).TryAcquire(m.ctx, "job", ttl)
	require.NoError(t, err)
	theirs := rLock{m.servers[0].Client(), "client:1"}
	require.ErrorIs(t, theirs.tryLock(m.ctx, "job"), errWrongType)
	_, err = theirs.tryLockAndGetToken(m.ctx, "job")
	require.ErrorIs(t, err, errWrongType)
	_, err = theirs.renew(m.ctx, "job")
	require.ErrorIs(t, err, errWrongType)
	require.ErrorIs(t, theirs.unlock(m.ctx, "job"), errWrongType)
	require.NoError(t, ours.Extend(m.ctx, ttl))
	require.NoError(t, ours.Release(m.ctx))
	require.NoError(t, theirs.tryLock(m.ctx, "job"), "the key is free")
}

// An Acquire that waits for an RLock gets the key after unlock. It never makes a mistake of the hash:
// no script of ours fails on it.
func TestAcquireWaitsForARedissonLock(t *testing.T) {
	m := startMasters(t, 1)
	theirs := rLock{m.servers[0].Client(), "client:1"}
	require.NoError(t, theirs.tryLock(m.ctx, "job"))
	r := m.ours(redlock.Config{})
	got := make(chan error, 1)
	go func() {
		l, err := r.Acquire(m.ctx, "job", ttl)
		if err == nil {
			err = l.Release(m.ctx)
		}
		got <- err
	}()
	m.eventually(func() bool { return m.admin[0].Exists(m.ctx, "redlock:queued:{job}").Val() == 1 }, "we are to queue")
	held, err := theirs.renew(m.ctx, "job")
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, theirs.unlock(m.ctx, "job"))
	require.NoError(t, <-got)
}

// A FairLock and ours exclude each other as an RLock and ours do. But we do not stand in Redisson's
// queue: after unlock we take the key ahead of a thread that waits there.
func TestWeOvertakeTheQueueOfARedissonFairLock(t *testing.T) {
	m := startMasters(t, 1)
	holder, waiter := rLock{m.servers[0].Client(), "client:1"}, rLock{m.servers[0].Client(), "client:2"}
	require.NoError(t, holder.tryFairLock(m.ctx, "job"))
	require.ErrorIs(t, waiter.tryFairLock(m.ctx, "job"), errRefused)
	assert.EqualValues(t, 1, m.admin[0].LLen(m.ctx, "redisson_lock_queue:{job}").Val())
	ours := us(m.ours(redlock.Config{}))
	ours.refused(m, "job")
	require.NoError(t, holder.unlock(m.ctx, "job"))
	release := ours.lock(m, "job")
	require.ErrorIs(t, waiter.tryFairLock(m.ctx, "job"), errWrongType)
	release()
	require.NoError(t, waiter.tryFairLock(m.ctx, "job"))
	require.NoError(t, waiter.unlock(m.ctx, "job"))
}

// An inspection calls an RLock foreign, and no ForceRelease breaks it.
func TestRedissonLockIsForeignToAnInspection(t *testing.T) {
	m := startMasters(t, 1)
	theirs := rLock{m.servers[0].Client(), "client:1"}
	require.NoError(t, theirs.tryLock(m.ctx, "job"))
	r := m.ours(redlock.Config{})
	found, err := r.Inspect(m.ctx, "job")
	require.NoError(t, err)
	assert.Equal(t, redlock.VerdictForeign, found.Verdict())
	assert.Contains(t, found.Nodes[0].Foreign(), "hash")
	_, err = r.ForceReleaseForeign(m.ctx, found)
	require.ErrorIs(t, err, redlock.ErrForeign)
	require.NoError(t, theirs.unlock(m.ctx, "job"))
}

// forceUnlock deletes the key of any client. Our holder finds out at its next renewal.
func TestRedissonForceUnlockBreaksOurLock(t *testing.T) {
	m := startMasters(t, 1)
	ours, err := m.ours(redlock.Config{}).TryAcquire(m.ctx, "job", ttl)
	require.NoError(t, err)
	broke, err := rLock{m.servers[0].Client(), "client:1"}.forceUnlock(m.ctx, "job")
	require.NoError(t, err)
	require.True(t, broke)
	require.ErrorIs(t, ours.Extend(m.ctx, ttl), redlock.ErrNotHeld)
}

// A FencedLock counts its tokens from 1, on one master. Ours begin with the time in microseconds, so
// a resource that has seen Redisson's tokens accepts ours, and refuses Redisson's from then on.
func TestOurTokensAreAboveThoseOfAFencedLock(t *testing.T) {
	m := startMasters(t, 1)
	theirs := rLock{m.servers[0].Client(), "client:1"}
	var last int64
	for range 3 {
		token, err := theirs.tryLockAndGetToken(m.ctx, "job")
		require.NoError(t, err)
		require.Greater(t, token, last)
		last = token
		require.NoError(t, theirs.unlock(m.ctx, "job"))
	}
	assert.EqualValues(t, 3, last)
	ours, err := m.ours(redlock.Config{Fencing: true}).TryAcquire(m.ctx, "job", ttl)
	require.NoError(t, err)
	assert.Greater(t, ours.FencingToken(), int64(1e15))
	require.NoError(t, ours.Release(m.ctx))
}
