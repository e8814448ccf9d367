package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A thousand goroutines of one Redlock hand the lock over within it, in order: each costs
// one SET and one release on each node, and a round trip for each. Nobody queues on the
// nodes, nobody listens.
func TestAThousandGoroutinesHandOver(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		b.delay(time.Millisecond, time.Millisecond)
		l := b.hold(p, time.Hour)
		require.NoError(b, l.Release(ctx))
		time.Sleep(10 * time.Millisecond)
		l, err := p.Acquire(ctx, key, time.Hour)
		require.NoError(b, err)
		const n = 1000
		var whose []int
		done := make(chan error, n)
		for i := range n {
			go func() {
				l, err := p.Acquire(ctx, key, time.Hour)
				if err == nil {
					whose = append(whose, i) // unguarded: the lock is the guard
					time.Sleep(time.Millisecond)
					err = l.Release(ctx)
				}
				done <- err
			}()
			b.settle()
		}
		tape := b.record(p)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		for range n {
			require.NoError(b, <-done)
		}
		assert.Equal(b, 2*time.Millisecond+n*5*time.Millisecond, time.Since(began))
		time.Sleep(10 * time.Millisecond)
		assert.Equal(b, map[string]map[string]int{p.name: {"SET": 3 * n, "release": 3 * (n + 1)}}, tape.count())
		for i := range n {
			require.Equal(b, i, whose[i])
		}
		for i := range 3 {
			assert.Empty(b, b.redis(i).Keys())
			assert.Empty(b, b.redis(i).PubSubChannels(""))
		}
	})
}

// While somebody else waits a turn is for one goroutine, and then it is his.
func TestALineLetsOthersIn(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		ours, theirs := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(b.ready(redlock.Config{}), time.Hour)
		var queue []*waiter
		for i := range 20 {
			p := ours
			if i == 3 || i == 4 {
				p = theirs
			}
			queue = append(queue, p.wait(key, time.Hour))
			time.Sleep(20 * time.Millisecond)
		}
		got := order(b, l, queue)
		assert.Equal(b, 0, got[0])
		assert.Equal(b, 3, got[1])
		assert.Equal(b, 1, got[2])
		assert.Equal(b, 4, got[3], "as they take turns")
		assert.Equal(b, []int{2, 5, 6, 7, 8, 9}, got[4:10], "and within each first come first served")
		b.noQueues()
	})
}

// A lock that is over lets the line go on, however it ended: its validity is over, it is
// found lost, or it is released, once or twice.
func TestALockThatIsOverLetsTheLineGoOn(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(b *bed, l *redlock.Lock)
		after time.Duration
	}{
		"released twice": {func(b *bed, l *redlock.Lock) {
			require.NoError(b, l.Release(ctx))
			assert.ErrorIs(b, l.Release(ctx), redlock.ErrReleased)
		}, 0},
		// Validity is over before the key is: by the drift of 102 ms.
		"expired": {func(*bed, *redlock.Lock) {}, ttl},
		"lost": {func(b *bed, l *redlock.Lock) {
			for i := range 5 {
				b.redis(i).Del(key)
			}
			assert.ErrorIs(b, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		}, 0},
	} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			p := b.ready(redlock.Config{})
			l, err := p.Acquire(ctx, key, ttl)
			require.NoError(b, err)
			taken := time.Now()
			first := p.wait(key, time.Hour)
			b.settle()
			second := p.wait(key, time.Hour)
			b.settle()
			tc.end(b, l)
			next := first.hold()
			assert.GreaterOrEqual(b, first.got.Sub(taken), tc.after, name)
			assert.LessOrEqual(b, first.got.Sub(taken), tc.after+5*time.Millisecond, name)
			assert.False(b, second.over(), name)
			b.release(next)
			b.release(second.hold())
			b.noQueues()
		})
	}
}

// Close ends every wait with ErrClosed, wherever it stands, and the queue is left.
func TestCloseEndsAllWaits(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		l := b.hold(b.ready(redlock.Config{}), time.Hour)
		p, other := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		var waits []*waiter
		for i := range 100 {
			waits = append(waits, p.wait(key, time.Hour))
			if i%2 == 0 {
				waits = append(waits, p.wait(fmt.Sprint("free ", i), time.Hour))
			}
		}
		time.Sleep(300 * time.Millisecond)
		after := other.wait(key, time.Hour)
		time.Sleep(300 * time.Millisecond)
		assert.Len(b, b.queued(0, key), 2)
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		assert.LessOrEqual(b, took(func() { require.NoError(b, p.Close()) }), 100*time.Millisecond)
		for _, w := range waits {
			<-w.done
			if w.err != nil {
				assert.ErrorIs(b, w.err, redlock.ErrClosed)
			}
		}
		assert.Len(b, b.queued(0, key), 1)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		l = after.hold()
		assert.Equal(b, 40*time.Millisecond, after.got.Sub(began))
		require.NoError(b, l.Release(ctx))
		time.Sleep(100 * time.Millisecond)
		b.noQueues()
		for i := range 5 {
			assert.Empty(b, b.redis(i).Keys())
		}
	})
}

// Those in the line whose context ends leave it without a word to the nodes, and without a
// gap.
func TestALineWithGaps(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		l, err := p.Acquire(ctx, key, time.Hour)
		require.NoError(b, err)
		var queue, stay []*waiter
		for range 30 {
			queue = append(queue, p.wait(key, time.Hour))
			b.settle()
		}
		tape := b.record(p)
		for i, w := range queue {
			if i%3 == 0 {
				stay = append(stay, w)
				continue
			}
			w.cancel()
			<-w.done
			assert.ErrorIs(b, w.err, context.Canceled)
			assert.ErrorIs(b, w.err, redlock.ErrHeld)
		}
		assert.Zero(b, tape.total())
		for _, w := range stay {
			b.release(l)
			l = w.hold()
		}
		b.release(l)
		assert.Equal(b, map[string]int{"SET": 30, "release": 33}, tape.count()[p.name])
		b.noQueues()
	})
}
