package waitqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Case 20: a waiter that gives up leaves the queue of every node at once, wherever it is in the
// queue. No other client sends anything.
func TestAcquireThatGivesUpLeavesTheQueue(t *testing.T) {
	for _, which := range [][]int{{0}, {2}, {4}, {1, 3}, {0, 1, 2, 3}, {4, 3, 2, 1, 0}} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			parties := b.ReadyParties(5, redlock.Config{})
			b.Delay(10*time.Millisecond, 10*time.Millisecond)
			l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
			queue := b.WaitInTurn(parties, key, 50*time.Millisecond)
			time.Sleep(150 * time.Millisecond)
			tape := b.Record(parties...)
			left := map[int]bool{}
			for _, i := range which {
				queue[i].Cancel()
				<-queue[i].Done
				assert.ErrorIs(b, queue[i].Err, context.Canceled)
				assert.ErrorIs(b, queue[i].Err, redlock.ErrHeld)
				left[i] = true
			}
			time.Sleep(10 * time.Millisecond) // one way
			b.Settle()
			for node := range 5 {
				require.Len(b, b.Queued(node, key), 5-len(which))
			}
			time.Sleep(10 * time.Millisecond)
			for _, counts := range virtual.WithoutPings(tape.Count()) {
				assert.Equal(b, map[string]int{"dequeue": 5}, counts)
			}
			for i, w := range queue {
				if !left[i] {
					began := time.Now()
					require.NoError(b, l.Release(ctx))
					l = w.Hold()
					assert.Equal(b, 40*time.Millisecond, w.Got.Sub(began))
				}
			}
			b.Release(l)
			time.Sleep(50 * time.Millisecond)
			b.NoQueues()
		})
	}
}

// The queue entry belongs to the Redlock. If the goroutine whose turn it was gives up, the next one
// inherits the entry. It is ahead of other clients that came before that goroutine, and nothing is
// sent.
func TestAcquireInheritsTheQueueEntryOfItsRedlock(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		ours, theirs := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
		first := ours.Wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		other := theirs.Wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		second := ours.Wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		third := ours.Wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		before := b.Queued(0, key)
		assert.Len(b, before, 2)
		tape := b.Record(ours, theirs)
		first.Cancel()
		<-first.Done
		b.Settle()
		assert.Zero(b, tape.Total())
		assert.Equal(b, before, b.Queued(0, key))
		b.Release(l)
		l = second.Hold()
		assert.False(b, other.Over())
		b.Settle()
		assert.Equal(b, before[1:], b.Queued(0, key), "the place was good for one turn")
		b.Release(l)
		l = other.Hold() // the third has queued only now
		b.Release(l)
		b.Release(third.Hold())
		b.NoQueues()
	})
}

// A waiter's context may end after it was woken and before it has the lock. It then passes the wake
// on: the next has the lock three one-way delays later, in any phase of the first.
func TestAcquireThatGivesUpWhenWokenWakesTheNext(t *testing.T) {
	for d := time.Duration(0); d <= 45; d += 3 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			holder, gone, next := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
			b.Delay(10*time.Millisecond, 10*time.Millisecond)
			l := b.Hold(holder, time.Hour)
			first := gone.Wait(key, time.Hour)
			time.Sleep(50 * time.Millisecond)
			second := next.Wait(key, time.Hour)
			time.Sleep(200 * time.Millisecond)
			var left time.Time
			time.AfterFunc(d*time.Millisecond, func() { left = time.Now(); first.Cancel() })
			began := time.Now()
			require.NoError(b, l.Release(ctx))
			<-first.Done
			if first.Err == nil {
				b.Release(first.Lock)
			}
			l = second.Hold()
			assert.LessOrEqual(b, second.Got.Sub(began), 100*time.Millisecond, "gave up after %v", left.Sub(began))
			b.Release(l)
			time.Sleep(50 * time.Millisecond)
			assert.Empty(b, b.Has(key))
			b.NoQueues()
		})
	}
}

// Case 20: a waiter is gone without notice, with all its connections. The script that would have
// woken it skips it, because PUBLISH reports no subscriber. The next waiter loses no time.
func TestReleaseSkipsAWaiterThatIsGone(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, dead, next := b.ReadyParty(redlock.Config{}), b.ReadyParties(3, redlock.Config{}), b.ReadyParty(redlock.Config{})
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(append(dead, next), key, 50*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for _, p := range dead {
			p.Crash()
		}
		time.Sleep(20 * time.Millisecond)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		l = queue[3].Hold()
		assert.Equal(b, 40*time.Millisecond, queue[3].Got.Sub(began))
		b.Release(l)
		b.NoQueues()
		for _, w := range queue[:3] {
			w.Cancel()
			<-w.Done
		}
	})
}

// Case 20: a waiter that hangs, or is cut off, while its connections look alive has a second to
// come once woken. Then it loses its queue entry. The next waiter finds that out when it looks: at
// the latest after as long again as it has waited, or 15 s. If the first keeps hanging, it costs
// the others nothing more.
func TestReleaseGivesAHungWaiterASecond(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, hung, next := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{}), b.ReadyParties(3, redlock.Config{})
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(append([]*virtual.Party{hung}, next...), key, 100*time.Millisecond)
		hung.Hang()
		tape := b.Record(next...)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		for i, w := range queue[1:] {
			l = w.Hold()
			if i == 0 {
				assert.GreaterOrEqual(b, w.Got.Sub(began), time.Second)
				assert.LessOrEqual(b, w.Got.Sub(began), 3*time.Second)
			} else {
				assert.Zero(b, w.Got.Sub(began))
			}
			began = time.Now()
			require.NoError(b, l.Release(ctx))
		}
		for _, counts := range virtual.WithoutPings(tape.Count()) {
			n := 0
			for _, c := range counts {
				n += c
			}
			assert.Less(b, n, 40, "%v", counts)
		}
		hung.Revive()
		b.Release(queue[0].Hold())
		b.NoQueues()
	})
}
