package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/redlock"
)

// A waiter that gives up leaves the queues of all nodes at once, wherever it is in them. The last
// one removes the queue, which would otherwise stay for three minutes.
func TestRealAcquireCancelledLeavesTheQueue(t *testing.T) {
	f := startFleet(t, 5)
	all := f.redlocks(5, redlock.Config{})
	l := f.hold(all[0], key)
	line := f.line(key, ttl, all[1:]...)
	for left, i := range []int{1, 0, 3} { // in the middle, the first, the last
		line[i].cancel()
		<-line[i].done
		require.ErrorIs(t, line[i].err, context.Canceled)
		require.ErrorIs(t, line[i].err, redlock.ErrHeld)
		f.queued(key, int64(3-left))
		assert.Equal(t, f.all(), f.has(flagKey(key)))
	}
	line[2].cancel()
	<-line[2].done
	f.nobodyWaits()
	f.onAll(key, l)
	require.NoError(t, f.release(l))
	f.gone(key)
}

// A context that ends at any moment of a wait leaves nothing behind.
func TestRealAcquireCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	f := startFleet(t, 3)
	holder, r := f.redlock(redlock.Config{}), f.redlock(redlock.Config{})
	l := f.hold(holder, key)
	for d := range 60 {
		ctx, cancel := context.WithTimeout(f.ctx, time.Duration(d)*250*time.Microsecond)
		_, err := r.Acquire(ctx, key, ttl)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	f.nobodyWaits()
	f.onAll(key, l)
	require.NoError(t, f.release(l))
	f.takeTurns([]*waiting{f.wait(r, key, ttl), f.wait(holder, key, ttl)})
	f.clean(key)
}

// Close of a Redlock that waits ends the wait and leaves the queue. It also ends the subscriptions.
func TestRealCloseLeavesTheQueue(t *testing.T) {
	f := startFleet(t, 3)
	holder := f.redlock(redlock.Config{})
	l := f.hold(holder, key)
	r, err := redlock.New(f.clients(), redlock.Config{NodeTimeout: patience})
	require.NoError(t, err)
	w := f.wait(r, key, ttl)
	f.queued(key, 1)
	f.eventually("it listens", func() bool { return slices.Equal(f.listeners(), []int{1, 1, 1}) })
	require.NoError(t, r.Close())
	<-w.done
	require.ErrorIs(t, w.err, redlock.ErrClosed)
	f.nobodyWaits()
	f.eventually("nobody listens", func() bool { return slices.Equal(f.listeners(), []int{0, 0, 0}) })
	f.onAll(key, l)
	require.NoError(t, f.release(l))
}

// Several goroutines of each of several Redlocks wait. Each Redlock has one queue entry.
func TestRealAcquireByALocalQueueHasOneQueueEntry(t *testing.T) {
	f := startFleet(t, 3)
	all := f.redlocks(3, redlock.Config{})
	l := f.hold(all[0], key)
	var line []*waiting
	for range 4 {
		line = append(line, f.wait(all[1], key, ttl), f.wait(all[2], key, ttl))
	}
	f.queued(key, 2)
	require.NoError(t, f.release(l))
	f.takeTurns(line)
	f.clean(key)
}

// standsIn adds an entry with a subscription to the queue for a key, and returns the messages to
// it.
func (f *fleet) standsIn(name string, of ...int) (said []<-chan *redis.Message) {
	f.Helper()
	who := "0123456789abcdef"
	for _, i := range of {
		sub := f.admin[i].Subscribe(f.ctx, "redlock:wake:"+who)
		f.Cleanup(func() { _ = sub.Close() })
		_, err := sub.Receive(f.ctx)
		require.NoError(f, err)
		said = append(said, sub.Channel())
		ticket := redis.Z{Score: float64(time.Now().UnixMicro()), Member: who + " " + name}
		require.NoError(f, f.admin[i].ZAdd(f.ctx, queueKey(name), ticket).Err())
		require.NoError(f, f.admin[i].Set(f.ctx, flagKey(name), "1", time.Minute).Err())
	}
	return said
}

// With Fair a newcomer finds a free key held while another client waits for it, and wakes that
// client. Without Fair the newcomer takes the key.
func TestRealAcquireFairKeepsNewcomersBehind(t *testing.T) {
	f := startFleet(t, 3)
	fair, unfair := f.redlock(redlock.Config{Fair: true}), f.redlock(redlock.Config{})
	said := f.standsIn(key, f.all()...)
	_, err := fair.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	assert.NotErrorIs(t, err, redlock.ErrNoQuorum)
	assert.Contains(t, fmt.Sprint(err), "has others waiting for it")
	f.gone(key)
	woken := 0
	f.eventually("a majority has woken him", func() bool {
		for _, c := range said {
			select {
			case m := <-c:
				assert.Contains(t, m.Payload, key)
				woken++
			default:
			}
		}
		return woken >= 2
	})

	l, err := unfair.TryAcquire(f.ctx, key, ttl)
	require.NoError(t, err)
	require.NoError(t, f.release(l))
	f.gone(key)

	// The woken client does not come, and so loses its queue entry.
	l, err = fair.Acquire(f.ctx, key, ttl)
	require.NoError(t, err)
	require.NoError(t, f.release(l))
	f.clean(key)

	// A minority's queue does not matter.
	f.standsIn(key, 1)
	l, err = fair.Acquire(f.ctx, key, ttl)
	require.NoError(t, err)
	require.NoError(t, f.release(l))
}

// Tokens grow in a contended run of clients that queue, with Fair and without.
func TestRealAcquireTokensGrowInTheQueue(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			f := startFleet(t, 3)
			var book ledger
			var g errgroup.Group
			const clients, times = 8, 15
			for _, r := range f.redlocks(clients, redlock.Config{Fencing: true, Fair: fair}) {
				g.Go(func() error {
					for range times {
						l, err := r.Acquire(f.ctx, key, time.Minute)
						if err != nil {
							return err
						}
						if err := book.enter(l.FencingToken()); err != nil {
							return err
						}
						book.leave()
						if err := l.Release(f.ctx); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, g.Wait())
			assert.EqualValues(t, clients*times, book.served.Load())
			f.clean(key)
		})
	}
}

// With the guard a wait is woken as without it. While a majority of the nodes have no vote the wait
// goes on, and it ends when they have one.
func TestRealAcquireWaitsWithTheGuard(t *testing.T) {
	f := startFleet(t, 3)
	all := f.redlocks(4, realGuarded)
	w := f.wait(all[0], key, realGuard) // the servers are new
	l := w.got()
	f.onAll(key, l)
	line := f.line(key, realGuard, all[1:]...)
	f.heard(key)
	if err := f.release(l); !errors.Is(err, redlock.ErrExpired) { // a slow machine
		require.NoError(t, err)
	}
	f.takeTurns(line)
	f.clean(key)
}

// Close ends the waits of a whole local queue. The last of them leaves the queue.
func TestRealCloseOfALocalQueueLeavesTheQueue(t *testing.T) {
	f := startFleet(t, 3)
	holder := f.redlock(redlock.Config{})
	l := f.hold(holder, key)
	r, err := redlock.New(f.clients(), redlock.Config{NodeTimeout: patience})
	require.NoError(t, err)
	var waits []*waiting
	for range 3 { // one in the queue, two behind it
		waits = append(waits, f.wait(r, key, ttl))
	}
	f.queued(key, 1)
	f.eventually("it listens", func() bool { return slices.Equal(f.listeners(), []int{1, 1, 1}) })
	require.NoError(t, r.Close())
	for _, w := range waits {
		<-w.done
		require.ErrorIs(t, w.err, redlock.ErrClosed)
	}
	f.nobodyWaits()
	f.eventually("nobody listens", func() bool { return slices.Equal(f.listeners(), []int{0, 0, 0}) })
	f.onAll(key, l)
	require.NoError(t, f.release(l))
}
