package waitqueue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A dead holder releases nothing, and its key expires. The first in the queue looks then. The
// others do not look yet: each waits a second for every waiter in front of it.
func TestAcquireFirstInTheQueueTakesAKeyThatExpires(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(10, redlock.Config{})
		l := b.Hold(holder, ttl)
		expires := time.Now().Add(ttl)
		holder.Crash()
		queue := b.WaitInTurn(parties, key, 20*time.Millisecond)
		time.Sleep(time.Until(expires) - 50*time.Millisecond)
		tape := b.Record(parties...)
		l2 := queue[0].Hold()
		assert.GreaterOrEqual(b, queue[0].Got.Sub(expires), time.Duration(0))
		assert.LessOrEqual(b, queue[0].Got.Sub(expires), 2*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		assert.Equal(b, map[string]map[string]int{queue[0].Name: {"try": 5}}, virtual.WithoutPings(tape.Count()))
		for _, w := range queue[1:] {
			released := time.Now()
			b.Release(l2)
			l2 = w.Hold()
			assert.Zero(b, w.Got.Sub(released))
		}
		b.Release(l2)
		b.NoQueues()
		holder.Revive()
		assert.Error(b, l.Release(ctx))
	})
}

// If the first waiter hangs too, and its connection looks alive, the next one looks a second later
// and wakes it. Another second later the first has lost its queue entry. The waiters behind look
// later, by their rank, so each dead waiter costs no more than four seconds. No waiter spins
// meanwhile.
func TestAcquireNextInTheQueueTakesAKeyThatExpires(t *testing.T) {
	for dead := range 6 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(8, redlock.Config{})
			_ = b.Hold(holder, ttl)
			expires := time.Now().Add(ttl)
			holder.Crash()
			queue := b.WaitInTurn(parties, key, 20*time.Millisecond)
			time.Sleep(time.Second)
			for _, p := range parties[:dead] {
				p.Hang()
			}
			tape := b.Record(parties...)
			l := queue[dead].Hold()
			late := queue[dead].Got.Sub(expires)
			assert.GreaterOrEqual(b, late, time.Duration(0))
			assert.LessOrEqual(b, late, time.Duration(4*dead)*time.Second+2*time.Millisecond, "%d dead", dead)
			for _, c := range virtual.WithoutPings(tape.Count()) {
				assert.LessOrEqual(b, c["try"]+c["enqueue"], 10*5)
			}
			b.Release(l)
			for i := range dead {
				parties[i].Revive()
			}
			virtual.Finish(b, slices.Delete(queue, dead, dead+1)...)
			time.Sleep(10 * time.Second) // until the lanes have given up a connection that hung
			b.NoQueues()
		})
	}
}

// A client of another library deletes its key and wakes nobody. A waiter finds out by looking.
func TestAcquireFindsAKeyThatAForeignClientDeleted(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		b.Steal(key, time.Hour, 0, 1, 2, 3, 4)
		w := p.Wait(key, ttl)
		time.Sleep(4 * time.Second)
		for i := range 5 {
			b.Redis(i).Del(key)
		}
		l := w.Hold()
		assert.Equal(b, looks(4*time.Second)+lookPause, w.Got.Sub(w.Begun))
		b.Release(l)
		b.NoQueues()
	})
}

// Thirty waiters that look do not spin either, if nobody ever releases.
func TestAcquireInVainAsksForLittle(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		parties := b.ReadyParties(10, redlock.Config{})
		b.Steal(key, 0, 0, 1, 2, 3, 4) // kept for ever
		tape := b.Record(parties...)
		queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
		time.Sleep(time.Minute)
		tape.Count()
		time.Sleep(10 * time.Minute)
		for _, c := range virtual.WithoutPings(tape.Count()) {
			require.Equal(b, []string{"enqueue"}, sorted(c))
			assert.InDelta(b, 40, c["enqueue"], 1, "one of the nodes each fifteen seconds")
		}
		for _, w := range queue {
			w.Cancel()
			<-w.Done
		}
		b.NoQueues()
		assert.Equal(b, []int{0, 1, 2, 3, 4}, b.Has(key))
	})
}
