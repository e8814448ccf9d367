package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// expiry is redsync's default.
const expiry = 8 * time.Second

// One node, one lock, one release.
func portedExample(w *world) {
	locks := w.redlock()
	lock, err := locks.Acquire(w.ctx, "test-redsync", expiry)
	require.NoError(w, err)
	require.NoError(w, lock.Release(w.ctx))
}

// A lock is on a quorum of the nodes.
func portedRedsync(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-redsync", expiry)
	require.NoError(w, err)
	w.acquired(lock)
}

// Locks on different keys at the same time.
func portedMutex(w *world) {
	locks := w.redlock()
	var g errgroup.Group
	for i := range w.nodes {
		g.Go(func() error {
			lock, err := locks.Acquire(w.ctx, "test-mutex-"+strconv.Itoa(i), expiry)
			if err != nil {
				return err
			}
			w.acquired(lock)
			return lock.Release(w.ctx)
		})
	}
	require.NoError(w, g.Wait())
}

// The same without waiting, and with an extension. The original uses one more loop than it needs: no
// key is contended.
func portedTryLock(w *world) {
	locks := w.redlock()
	var g errgroup.Group
	for i := range w.nodes {
		g.Go(func() error {
			lock, err := locks.TryAcquire(w.ctx, "test-trylock-"+strconv.Itoa(i), expiry)
			if err != nil {
				return err
			}
			if err := lock.Extend(w.ctx, expiry); err != nil {
				return err
			}
			w.acquired(lock)
			return lock.Release(w.ctx)
		})
	}
	require.NoError(w, g.Wait())
}

// The second of two clients learns that the key is taken, and which nodes refused. redsync lists them
// in ErrTaken; ours is a QuorumError, which matches ErrHeld.
func portedMutexAlreadyLocked(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-lock", expiry)
	require.NoError(w, err)
	w.acquired(lock)

	_, err = w.redlock().TryAcquire(w.ctx, "test-lock", expiry)
	require.ErrorIs(w, err, redlock.ErrHeld)
	var q *redlock.QuorumError
	require.ErrorAs(w, err, &q)
	refused := 0
	for _, n := range q.Nodes {
		if n.Vote == quorum.Refused {
			refused++
			assert.ErrorIs(w, n, redlock.ErrHeld)
		}
	}
	assert.Positive(w, refused)
}

// Each subset of the nodes is taken by somebody else in turn. With a quorum of free nodes there is a
// lock, and without one there is none.
func portedMutexQuorum(w *world) {
	locks := w.redlock()
	for mask := range 1 << len(w.nodes) {
		key := "test-mutex-partial-" + strconv.Itoa(mask)
		free := 0
		for i, a := range w.admin {
			if mask&(1<<i) == 0 {
				free++
			} else {
				require.NoError(w, a.Set(w.ctx, key, "foobar", 0).Err())
			}
		}
		lock, err := locks.TryAcquire(w.ctx, key, expiry)
		if free >= w.quorum() {
			require.NoError(w, err, "mask %b", mask)
			w.acquired(lock)
		} else {
			require.ErrorIs(w, err, redlock.ErrHeld, "mask %b", mask)
		}
	}
}

// A node's error wraps its cause. redsync's RedisError is our NodeError.
func portedRedisErrorIs(w *world) {
	for _, cause := range []error{redlock.ErrHeld, errors.New("other"), fmt.Errorf("wrapping: %w", redlock.ErrHeld)} {
		assert.ErrorIs(w, redlock.NodeError{Addr: "node", Err: cause}, cause)
	}
}

// The same by type.
func portedRedisErrorAs(w *world) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, cause := range []error{dial, fmt.Errorf("wrapping: %w", dial)} {
		var found *net.OpError
		require.ErrorAs(w, redlock.NodeError{Addr: "node", Err: cause}, &found)
		assert.Same(w, dial, found)
	}
}

// Valid asks the clock and no node. Another client waits in vain: redsync gives up after 32 tries,
// and Acquire when its context ends.
func portedValid(w *world) {
	lock, err := w.redlock().Acquire(w.ctx, "test-shared-lock", time.Hour)
	require.NoError(w, err)
	w.acquired(lock)
	assert.True(w, lock.Valid())

	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	_, err = w.redlock().Acquire(ctx, "test-shared-lock", expiry)
	require.ErrorIs(w, err, redlock.ErrHeld)
	require.ErrorIs(w, err, context.DeadlineExceeded)
}
