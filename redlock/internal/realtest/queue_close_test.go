package realtest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// Close ends the waits of a whole line, whose last one leaves the queue.
func TestRealCloseOfALocalQueueLeavesTheQueue(t *testing.T) {
	f := startFleet(t, 3)
	holder := f.redlock(redlock.Config{})
	l := f.acquire(holder, key, time.Hour)
	f.onAll(key, l, f.all()...)
	r, err := redlock.New(f.clients(), redlock.Config{NodeTimeout: patience})
	require.NoError(t, err)
	var waits []*waiting
	for range 3 { // one in the queue, two behind it
		waits = append(waits, f.wait(r, key, ttl))
	}
	f.queued(key, 1, f.all()...)
	f.eventually("it listens", func() bool { return slices.Equal(f.listeners(), []int{1, 1, 1}) })
	require.NoError(t, r.Close())
	for _, w := range waits {
		<-w.done
		require.ErrorIs(t, w.err, redlock.ErrClosed)
	}
	f.nobodyWaits(f.all()...)
	f.eventually("nobody listens", func() bool { return slices.Equal(f.listeners(), []int{0, 0, 0}) })
	f.onAll(key, l, f.all()...)
	require.NoError(t, f.release(l))
}
