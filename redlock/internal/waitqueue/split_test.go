package waitqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Five clients that want a free key at the same instant split the nodes between them, and none has
// a majority. No random pause separates them: all are in the queues by then. The clients that
// delete their grants wake the first, which has the lock a few round trips later.
func TestAcquireEndsASplitVoteByRule(t *testing.T) {
	virtual.Crowded(t)
	worst := time.Duration(0)
	for seed := range uint64(40) {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			parties := b.ReadyParties(5, redlock.Config{})
			for i, p := range parties {
				jitterPaths(p, 100*seed+uint64(i), 10*time.Millisecond)
			}
			// They have waited before, so their subscriptions exist.
			first := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
			queue := b.WaitInTurn(parties, key, 0)
			time.Sleep(300 * time.Millisecond)
			b.Release(first)
			virtual.Finish(b, queue...)
			time.Sleep(time.Second)

			began := time.Now()
			queue = b.WaitInTurn(parties, key, 0)
			got := make(chan *virtual.Waiter, len(queue))
			for _, w := range queue {
				go func() { <-w.Done; got <- w }()
			}
			w := <-got
			worst = max(worst, w.Got.Sub(began))
			assert.LessOrEqual(b, w.Got.Sub(began), 8*20*time.Millisecond, "seed %d: eight round trips", seed)
			virtual.Finish(b, queue...)
			time.Sleep(time.Second)
			assert.Empty(b, b.Has(key))
			b.NoQueues()
		})
	}
	t.Logf("the first had it after %v at the most", worst)
}

// The same happens before any client has subscribed, as at the start of a program on many machines.
// Connections must be made first.
func TestAcquireEndsASplitVoteAtTheStart(t *testing.T) {
	virtual.Crowded(t)
	worst := time.Duration(0)
	for seed := range uint64(20) {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			parties := b.ReadyParties(5, redlock.Config{})
			for i, p := range parties {
				jitterPaths(p, 100*seed+uint64(i), 10*time.Millisecond)
			}
			began := time.Now()
			queue := b.WaitInTurn(parties, key, 0)
			got := make(chan *virtual.Waiter, len(queue))
			for _, w := range queue {
				go func() { <-w.Done; got <- w }()
			}
			w := <-got
			worst = max(worst, w.Got.Sub(began))
			assert.LessOrEqual(b, w.Got.Sub(began), 500*time.Millisecond, "seed %d", seed)
			virtual.Finish(b, queue...)
			assert.LessOrEqual(b, time.Since(began), 3*time.Second, "seed %d", seed)
			time.Sleep(time.Second)
			assert.Empty(b, b.Has(key))
			b.NoQueues()
		})
	}
	t.Logf("the first had it after %v at the most", worst)
}
