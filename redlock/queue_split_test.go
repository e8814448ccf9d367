package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/redlock"
)

// Five who want a free key at the same instant split the nodes between them, and nobody
// has a majority. No random pause separates them: all are in the queues by then, who is
// first is woken by those who give back, and has the lock a few round trips later.
func TestASplitVoteEndsByRule(t *testing.T) {
	crowded(t)
	worst := time.Duration(0)
	for seed := range uint64(40) {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			parties := b.crowd(5, redlock.Config{})
			for i, p := range parties {
				p.jitter(100*seed+uint64(i), 10*time.Millisecond)
			}
			// They have waited before, so their connections to listen on are there.
			first := b.hold(b.ready(redlock.Config{}), time.Hour)
			queue := b.line(parties, key, 0)
			time.Sleep(300 * time.Millisecond)
			b.release(first)
			finish(b, queue...)
			time.Sleep(time.Second)

			began := time.Now()
			queue = b.line(parties, key, 0)
			got := make(chan *waiter, len(queue))
			for _, w := range queue {
				go func() { <-w.done; got <- w }()
			}
			w := <-got
			worst = max(worst, w.got.Sub(began))
			assert.LessOrEqual(b, w.got.Sub(began), 8*20*time.Millisecond, "seed %d: eight round trips", seed)
			finish(b, queue...)
			time.Sleep(time.Second)
			assert.Empty(b, b.has(key))
			b.noQueues()
		})
	}
	t.Logf("the first had it after %v at the most", worst)
}

// The same when nobody listens yet, as at the start of a program on many machines. Then
// connections have to be made first.
func TestASplitVoteAtTheStart(t *testing.T) {
	crowded(t)
	worst := time.Duration(0)
	for seed := range uint64(20) {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			parties := b.crowd(5, redlock.Config{})
			for i, p := range parties {
				p.jitter(100*seed+uint64(i), 10*time.Millisecond)
			}
			began := time.Now()
			queue := b.line(parties, key, 0)
			got := make(chan *waiter, len(queue))
			for _, w := range queue {
				go func() { <-w.done; got <- w }()
			}
			w := <-got
			worst = max(worst, w.got.Sub(began))
			assert.LessOrEqual(b, w.got.Sub(began), 500*time.Millisecond, "seed %d", seed)
			finish(b, queue...)
			assert.LessOrEqual(b, time.Since(began), 3*time.Second, "seed %d", seed)
			time.Sleep(time.Second)
			assert.Empty(b, b.has(key))
			b.noQueues()
		})
	}
	t.Logf("the first had it after %v at the most", worst)
}
