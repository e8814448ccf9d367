package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// Case 20: who gives up leaves the queue of every node at once, wherever he stands in it,
// and nobody else is asked for anything.
func TestWhoGivesUpLeavesTheQueue(t *testing.T) {
	for _, which := range [][]int{{0}, {2}, {4}, {1, 3}, {0, 1, 2, 3}, {4, 3, 2, 1, 0}} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			parties := b.crowd(5, redlock.Config{})
			b.delay(10*time.Millisecond, 10*time.Millisecond)
			l := b.hold(b.ready(redlock.Config{}), time.Hour)
			queue := b.line(parties, key, 50*time.Millisecond)
			time.Sleep(150 * time.Millisecond)
			tape := b.record(parties...)
			left := map[int]bool{}
			for _, i := range which {
				queue[i].cancel()
				<-queue[i].done
				assert.ErrorIs(b, queue[i].err, context.Canceled)
				assert.ErrorIs(b, queue[i].err, redlock.ErrHeld)
				left[i] = true
			}
			time.Sleep(10 * time.Millisecond) // one way
			b.settle()
			for node := range 5 {
				require.Len(b, b.queued(node, key), 5-len(which))
			}
			time.Sleep(10 * time.Millisecond)
			for _, counts := range asked(tape.count()) {
				assert.Equal(b, map[string]int{"dequeue": 5}, counts)
			}
			for i, w := range queue {
				if !left[i] {
					began := time.Now()
					require.NoError(b, l.Release(ctx))
					l = w.hold()
					assert.Equal(b, 40*time.Millisecond, w.got.Sub(began))
				}
			}
			b.release(l)
			time.Sleep(50 * time.Millisecond)
			b.noQueues()
		})
	}
}

// The place in the queue is the Redlock's: if the goroutine whose turn it was gives up,
// the next has it, in front of others who came before him, and nothing is sent.
func TestAPlaceGoesToTheNextGoroutine(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		ours, theirs := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(b.ready(redlock.Config{}), time.Hour)
		first := ours.wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		other := theirs.wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		second := ours.wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		third := ours.wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		before := b.queued(0, key)
		assert.Len(b, before, 2)
		tape := b.record(ours, theirs)
		first.cancel()
		<-first.done
		b.settle()
		assert.Zero(b, tape.total())
		assert.Equal(b, before, b.queued(0, key))
		b.release(l)
		l = second.hold()
		assert.False(b, other.over())
		b.settle()
		assert.Equal(b, before[1:], b.queued(0, key), "the place was good for one turn")
		b.release(l)
		l = other.hold() // the third has come to the nodes only now
		b.release(l)
		b.release(third.hold())
		b.noQueues()
	})
}

// Whose context ends after he was woken and before he has the lock passes the wake on:
// the next has it three ways later, whatever he was about when he left.
func TestWhoGivesUpWhenWokenWakesTheNext(t *testing.T) {
	for d := time.Duration(0); d <= 45; d += 3 {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, gone, next := b.ready(redlock.Config{}), b.ready(redlock.Config{}), b.ready(redlock.Config{})
			b.delay(10*time.Millisecond, 10*time.Millisecond)
			l := b.hold(holder, time.Hour)
			first := gone.wait(key, time.Hour)
			time.Sleep(50 * time.Millisecond)
			second := next.wait(key, time.Hour)
			time.Sleep(200 * time.Millisecond)
			var left time.Time
			time.AfterFunc(d*time.Millisecond, func() { left = time.Now(); first.cancel() })
			began := time.Now()
			require.NoError(b, l.Release(ctx))
			<-first.done
			if first.err == nil {
				b.release(first.lock)
			}
			l = second.hold()
			assert.LessOrEqual(b, second.got.Sub(began), 100*time.Millisecond, "gave up after %v", left.Sub(began))
			b.release(l)
			time.Sleep(50 * time.Millisecond)
			assert.Empty(b, b.has(key))
			b.noQueues()
		})
	}
}

// Case 20: who is gone without a word, connections and all, is skipped in the script that
// would have woken him: PUBLISH tells that nobody listens. It costs the next no time.
func TestWhoIsGoneIsSkippedAtOnce(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, dead, next := b.ready(redlock.Config{}), b.crowd(3, redlock.Config{}), b.ready(redlock.Config{})
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		l := b.hold(holder, time.Hour)
		queue := b.line(append(dead, next), key, 50*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for _, p := range dead {
			p.crash()
		}
		time.Sleep(20 * time.Millisecond)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		l = queue[3].hold()
		assert.Equal(b, 40*time.Millisecond, queue[3].got.Sub(began))
		b.release(l)
		b.noQueues()
		for _, w := range queue[:3] {
			w.cancel()
			<-w.done
		}
	})
}

// Case 20: who hangs, or is cut off, with connections that look alive has a second to come
// once woken. After that the place is lost, and who is next finds out by itself when it
// looks: at the latest as long after as it has waited, or 15 s. If it keeps hanging, it
// costs nobody anything any more.
func TestWhoHangsHasASecond(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, hung, next := b.ready(redlock.Config{}), b.ready(redlock.Config{}), b.crowd(3, redlock.Config{})
		l := b.hold(holder, time.Hour)
		queue := b.line(append([]*party{hung}, next...), key, 100*time.Millisecond)
		hung.hang()
		tape := b.record(next...)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		for i, w := range queue[1:] {
			l = w.hold()
			if i == 0 {
				assert.GreaterOrEqual(b, w.got.Sub(began), time.Second)
				assert.LessOrEqual(b, w.got.Sub(began), 3*time.Second)
			} else {
				assert.Zero(b, w.got.Sub(began))
			}
			began = time.Now()
			require.NoError(b, l.Release(ctx))
		}
		for _, counts := range asked(tape.count()) {
			n := 0
			for _, c := range counts {
				n += c
			}
			assert.Less(b, n, 40, "%v", counts)
		}
		hung.revive()
		b.release(queue[0].hold())
		b.noQueues()
	})
}
