package migrating_test

import (
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// short is the expiry of the originals whose locks expire.
const short = 500 * time.Millisecond

// An extension moves the expiry of each key.
func portedMutexExtend(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-mutex-extend", expiry)
	require.NoError(w, err)
	time.Sleep(time.Second)
	before := w.expiries(lock.Key())
	require.NoError(w, lock.Extend(w.ctx, expiry))
	synctest.Wait() // redsync waits for all nodes, and we for a quorum
	for i, after := range w.expiries(lock.Key()) {
		assert.Greater(w, after, before[i])
	}
	require.NoError(w, lock.Release(w.ctx))
}

// A lock that has expired cannot be extended.
func portedMutexExtendExpired(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-mutex-extend", short)
	require.NoError(w, err)
	time.Sleep(time.Second)
	require.ErrorIs(w, lock.Extend(w.ctx, short), redlock.ErrExpired)
}

// The release of a lock that has expired is an error.
func portedMutexUnlockExpired(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-mutex-extend", short)
	require.NoError(w, err)
	time.Sleep(time.Second)
	err = lock.Release(w.ctx)
	require.ErrorIs(w, err, redlock.ErrNotHeld)
	require.ErrorIs(w, err, redlock.ErrExpired)
}

// Here we differ. With WithSetNXOnExtend, an extension of redsync takes an expired key again, and the
// program goes on as if nothing had happened, though another client may have had the key meanwhile.
// Our Extend never does. The program acquires a new lock, and so knows that the old one has ended.
func portedSetNXOnExtendExpired(w *world) {
	locks := w.redlock()
	lock, err := locks.Acquire(w.ctx, "test-mutex-extend", short)
	require.NoError(w, err)
	time.Sleep(time.Second)
	require.ErrorIs(w, lock.Extend(w.ctx, short), redlock.ErrExpired)
	require.Error(w, lock.Context().Err())

	again, err := locks.TryAcquire(w.ctx, lock.Key(), short)
	require.NoError(w, err)
	w.acquired(again)
	assert.NotEqual(w, lock.Value(), again.Value())
	require.NoError(w, again.Release(w.ctx))
}

// The first client's lock has expired and a second client has the key. The first cannot extend its
// lock, and does not touch the second's.
func portedSetNXOnExtendTaken(w *world) {
	first, err := w.redlock().Acquire(w.ctx, "test-mutex-extend", short)
	require.NoError(w, err)
	time.Sleep(time.Second)
	second, err := w.redlock().Acquire(w.ctx, "test-mutex-extend", expiry)
	require.NoError(w, err)
	require.Error(w, first.Extend(w.ctx, short))
	require.Error(w, first.Release(w.ctx))
	w.acquired(second)
	require.NoError(w, second.Extend(w.ctx, expiry))
	require.NoError(w, second.Release(w.ctx))
}
