package migrating_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// One client locks, and another unlocks. In the original the second gets the lock's value; here it
// gets a handle, and proves with it that it owns the lock. The first has no lock from then on.
func portedLockUnlockSplit(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-split-lock", time.Hour)
	require.NoError(w, err)
	w.acquired(lock)
	handle, err := lock.Detach()
	require.NoError(w, err)
	require.False(w, lock.Valid())

	second := w.redlock()
	resumed, err := second.Resume(w.ctx, handle, time.Hour)
	require.NoError(w, err)
	w.acquired(resumed)
	_, err = second.TryAcquire(w.ctx, "test-split-lock", time.Hour)
	require.ErrorIs(w, err, redlock.ErrHeld)
	require.NoError(w, resumed.Release(w.ctx))
}
