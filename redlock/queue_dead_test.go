package redlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A holder that is dead releases nothing, and its key expires: the first in the queue looks
// then, and none of the others does, nor for each of those in front of it for a second.
func TestTheFirstTakesAKeyThatExpires(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, parties := b.ready(redlock.Config{}), b.crowd(10, redlock.Config{})
		l := b.hold(holder, ttl)
		expires := time.Now().Add(ttl)
		holder.crash()
		queue := b.line(parties, key, 20*time.Millisecond)
		time.Sleep(time.Until(expires) - 50*time.Millisecond)
		tape := b.record(parties...)
		l2 := queue[0].hold()
		assert.GreaterOrEqual(b, queue[0].got.Sub(expires), time.Duration(0))
		assert.LessOrEqual(b, queue[0].got.Sub(expires), 2*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		assert.Equal(b, map[string]map[string]int{queue[0].name: {"try": 5}}, asked(tape.count()))
		for _, w := range queue[1:] {
			released := time.Now()
			b.release(l2)
			l2 = w.hold()
			assert.Zero(b, w.got.Sub(released))
		}
		b.release(l2)
		b.noQueues()
		holder.revive()
		assert.Error(b, l.Release(ctx))
	})
}

// If the first hangs too, and its connection looks alive, the next looks a second later, and
// wakes it; a second after that it has lost its place. Those behind it look later, by their
// rank, so each costs no more than four seconds. Nobody spins meanwhile.
func TestTheNextTakesAKeyThatExpires(t *testing.T) {
	for dead := range 6 {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, parties := b.ready(redlock.Config{}), b.crowd(8, redlock.Config{})
			_ = b.hold(holder, ttl)
			expires := time.Now().Add(ttl)
			holder.crash()
			queue := b.line(parties, key, 20*time.Millisecond)
			time.Sleep(time.Second)
			for _, p := range parties[:dead] {
				p.hang()
			}
			tape := b.record(parties...)
			l := queue[dead].hold()
			late := queue[dead].got.Sub(expires)
			assert.GreaterOrEqual(b, late, time.Duration(0))
			assert.LessOrEqual(b, late, time.Duration(4*dead)*time.Second+2*time.Millisecond, "%d dead", dead)
			for _, c := range asked(tape.count()) {
				assert.LessOrEqual(b, c["try"]+c["enqueue"], 10*5)
			}
			b.release(l)
			for i := range dead {
				parties[i].revive()
			}
			finish(b, slices.Delete(queue, dead, dead+1)...)
			time.Sleep(10 * time.Second) // until a lane gives a connection up that hung
			b.noQueues()
		})
	}
}

// A client of another library deletes its key and tells nobody: who waits looks.
func TestAForeignClientThatTellsNobody(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		b.steal(key, time.Hour, 0, 1, 2, 3, 4)
		w := p.wait(key, ttl)
		time.Sleep(4 * time.Second)
		for i := range 5 {
			b.redis(i).Del(key)
		}
		l := w.hold()
		assert.Equal(b, looks(4*time.Second)+lookPause, w.got.Sub(w.begun))
		b.release(l)
		b.noQueues()
	})
}

// Nor do 30 of them that look spin, when nobody ever releases.
func TestWhoWaitsInVainAsksForLittle(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		parties := b.crowd(10, redlock.Config{})
		b.steal(key, 0, 0, 1, 2, 3, 4) // for ever
		tape := b.record(parties...)
		queue := b.line(parties, key, 100*time.Millisecond)
		time.Sleep(time.Minute)
		tape.count()
		time.Sleep(10 * time.Minute)
		for _, c := range asked(tape.count()) {
			require.Equal(b, []string{"enqueue"}, sorted(c))
			assert.InDelta(b, 40, c["enqueue"], 1, "one of the nodes each fifteen seconds")
		}
		for _, w := range queue {
			w.cancel()
			<-w.done
		}
		b.noQueues()
		assert.Equal(b, []int{0, 1, 2, 3, 4}, b.has(key))
	})
}
