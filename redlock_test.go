// Package redlock_test is the library end to end, over TCP, on in-memory masters
// that are killed while it is used.
package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key = "orders"
	ttl = 30 * time.Second
)

var ctx = context.Background()

// open is a Redlock on the masters, as a service would make it.
func open(t *testing.T, masters *redlocktest.Masters) *redlock.Redlock {
	t.Helper()
	// Long enough that a busy machine does not make a live master look dead.
	r, err := redlock.Open(masters.URLs(), redlock.Config{NodeTimeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// eventuallyFree waits until each of these masters is rid of the key. Stragglers are
// released after the caller has its result.
func eventuallyFree(t *testing.T, masters *redlocktest.Masters, which ...int) {
	t.Helper()
	for _, i := range which {
		require.Eventually(t, func() bool { return !masters.Master(i).Miniredis().Exists(key) },
			10*time.Second, time.Millisecond, "master %d still has the key", i)
	}
}

// cycle takes the lock, renews it and gives it back.
func cycle(t *testing.T, r *redlock.Redlock) {
	t.Helper()
	l, err := r.TryAcquire(ctx, key, ttl)
	require.NoError(t, err)
	require.NoError(t, l.Extend(ctx, 2*ttl))
	assert.Greater(t, time.Until(l.Until()), ttl)
	require.NoError(t, l.Release(ctx))
	assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
}

func TestFiveMastersOfWhichSomeAreKilled(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	r := open(t, masters)

	cycle(t, r)
	held, err := r.TryAcquire(ctx, "held all the while", ttl)
	require.NoError(t, err)
	held.KeepAlive()
	eventuallyFree(t, masters, 0, 1, 2, 3, 4)

	masters.Kill(0, 1)
	for range 3 {
		cycle(t, r)
	}
	require.NoError(t, held.Extend(ctx, ttl))
	eventuallyFree(t, masters, 2, 3, 4)

	masters.Kill(2)
	for range 3 {
		_, err = r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrHeld)
	}
	var failed *redlock.QuorumError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 3, failed.Need)
	for i, n := range failed.Nodes[:3] {
		assert.Equal(t, masters.Master(i).Addr(), n.Addr)
		assert.ErrorContains(t, n, "refused")
	}
	eventuallyFree(t, masters, 3, 4)
	require.ErrorIs(t, held.Extend(ctx, ttl), redlock.ErrNoQuorum)
	require.NoError(t, held.Context().Err(), "valid until its Until")

	require.NoError(t, masters.Restart(0, 1, 2))
	// A clean-up that was refused a moment ago speaks for what waits behind it, once.
	require.Eventually(t, func() bool {
		l, err := r.TryAcquire(ctx, key, ttl)
		return err == nil && l.Release(ctx) == nil
	}, 10*time.Second, time.Millisecond)
	cycle(t, r)
	require.NoError(t, held.Extend(ctx, ttl))
	require.NoError(t, held.Release(ctx))
}

func TestAMasterThatComesBackWithoutMemory(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	r, other := open(t, masters), open(t, masters)
	l, err := r.TryAcquire(ctx, key, ttl)
	require.NoError(t, err)
	held := func(i int) func() bool {
		return func() bool { return masters.Master(i).Miniredis().Exists(key) }
	}
	for i := range 5 {
		require.Eventually(t, held(i), 10*time.Second, time.Millisecond)
	}

	require.NoError(t, masters.Master(4).RestartEmpty())
	require.False(t, masters.Master(4).Miniredis().Exists(key))
	_, err = other.TryAcquire(ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld, "one vote is not a majority")
	require.NoError(t, other.Close()) // what that vote left is gone

	// The next extension gives the key back to the master that forgot it.
	require.Eventually(t, func() bool {
		return l.Extend(ctx, ttl) == nil && held(4)()
	}, 10*time.Second, time.Millisecond)
	masters.Kill(0, 1)
	require.NoError(t, l.Extend(ctx, ttl), "so the lock survives two others")
	require.NoError(t, l.Release(ctx))
}

func TestAnyNumberOfMasters(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			masters := redlocktest.Start(t, n)
			r := open(t, masters)
			for down := range n {
				if up := n - down; up >= quorum.Size(n) {
					cycle(t, r)
				} else {
					_, err := r.TryAcquire(ctx, key, ttl)
					require.ErrorIs(t, err, redlock.ErrNoQuorum)
				}
				masters.Kill(down)
			}
		})
	}
}

// Case 24: everybody wants one key, everybody touches one place, and the checker
// fails on any overlap. Masters come and go meanwhile, never more than two at a
// time, and keep their memory: then Redlock promises exclusion.
func TestNoTwoOf64HoldTheLock(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	clients := make([]*redlock.Redlock, 4)
	for i := range clients {
		clients[i] = open(t, masters)
	}

	var (
		holders  atomic.Int32
		turns    atomic.Int32
		workers  sync.WaitGroup
		overlaps atomic.Int32
		finished = make(chan struct{})
	)
	for i := range 64 {
		workers.Go(func() {
			for range 5 {
				err := clients[i%len(clients)].Do(ctx, key, ttl, func(context.Context) error {
					if holders.Add(1) != 1 {
						overlaps.Add(1)
					}
					turns.Add(1)
					// Let everybody else run while we hold it.
					for range 10 {
						if holders.Load() != 1 {
							overlaps.Add(1)
						}
						time.Sleep(0)
					}
					holders.Add(-1)
					return nil
				})
				// A release may find that too many were just being restarted.
				if err != nil && !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrNotHeld) {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(finished)
	}()
	for down := 0; ; down = (down + 1) % 5 {
		a, b := down, (down+2)%5
		masters.Kill(a, b)
		before := turns.Load()
		for turns.Load() < before+10 {
			select {
			case <-finished:
				assert.NoError(t, masters.Restart(a, b))
				assert.EqualValues(t, 64*5, turns.Load())
				assert.Zero(t, overlaps.Load(), "two held the lock at once")
				return
			case <-time.After(time.Millisecond):
			}
		}
		require.NoError(t, masters.Restart(a, b))
	}
}
