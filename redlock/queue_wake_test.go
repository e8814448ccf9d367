package redlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A hand-over takes two round trips, one to release and wake and one to try, and about
// twice as many commands as there are nodes. Who is not first is neither woken nor asks. The
// second is told that it is, for the case that the first is dead.
func TestAReleaseWakesTheFirstInTheQueue(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, parties := b.ready(redlock.Config{}), b.crowd(5, redlock.Config{})
		tape := b.record(append(parties, holder)...)
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		l := b.hold(holder, time.Hour)
		queue := b.line(parties, key, 50*time.Millisecond)
		messages := b.published(0)
		time.Sleep(150 * time.Millisecond)
		tape.count() // by now all of them do nothing, until they look after a second
		for i, w := range queue {
			messages.Store(0)
			began := time.Now()
			assert.Equal(b, 20*time.Millisecond, took(func() { require.NoError(b, l.Release(ctx)) }))
			l = w.hold()
			assert.Equal(b, 40*time.Millisecond, w.got.Sub(began), "two round trips")
			for _, later := range queue[i+1:] {
				require.False(b, later.over())
			}
			time.Sleep(10 * time.Millisecond)
			counts := asked(tape.count())
			assert.Equal(b, 5, counts[holder.name]["release"])
			assert.Equal(b, []string{"try"}, sorted(counts[w.name]))
			assert.GreaterOrEqual(b, counts[w.name]["try"], 5)
			assert.LessOrEqual(b, counts[w.name]["try"], 7, "a wake that is behind the third is answered too")
			assert.Len(b, counts, 2, "nobody else is asked anything")
			assert.EqualValues(b, min(2, len(queue)-i), messages.Load())
			holder = w.party
		}
		time.Sleep(50 * time.Millisecond)
		messages.Store(0)
		require.NoError(b, l.Release(ctx))
		assert.Zero(b, messages.Load(), "nobody is left")
		b.noQueues()
	})
}

// With links of different speed the wakes arrive one by one: it is the third that counts,
// and each behind it costs one command at the most.
func TestAMajorityOfWakesIsEnough(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(holder, time.Hour)
		w := p.wait(key, time.Hour)
		time.Sleep(500 * time.Millisecond)
		for i, m := range b.masters.All() {
			m.Delay(0, time.Duration(10*(i+1))*time.Millisecond)
		}
		tape := b.record(p, holder)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		l = w.hold()
		assert.Equal(b, 60*time.Millisecond, w.got.Sub(began), "woken by three of five, granted by three of five")
		time.Sleep(time.Second)
		counts := asked(tape.count())[p.name]
		assert.Equal(b, []string{"try"}, sorted(counts))
		assert.LessOrEqual(b, counts["try"], 7)
		b.release(l)
		b.noQueues()
	})
}

// Step 1 without anybody else: SET, and the script that deletes. No queue, no flag, and
// nobody listens.
func TestWhoIsAloneMakesNoQueue(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		for i := range 5 {
			b.commands(i)
		}
		l, err := p.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		b.settle()
		for i := range 5 {
			assert.Equal(b, []string{key}, b.redis(i).Keys())
		}
		b.release(l)
		for i := range 5 {
			assert.Equal(b, []string{"SET", "EVALSHA"}, b.commands(i))
			assert.Empty(b, b.redis(i).Keys())
			assert.Empty(b, b.redis(i).PubSubChannels(""))
		}
	})
}

// Who waits is in the queue of every node as long as it waits, and who waits for half an
// hour asks for little: a look now and then, and whether the connections live.
func TestAPlaceIsKeptForAsLongAsTheWait(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(holder, 24*time.Hour)
		tape := b.record(p)
		w := p.wait(key, ttl)
		time.Sleep(10 * time.Second)
		tape.count()
		for range 180 {
			time.Sleep(10 * time.Second)
			for i := range 5 {
				require.Len(b, b.queued(i, key), 1, "node %d", i)
				require.True(b, b.redis(i).Exists("redlock:queued:{"+key+"}"))
			}
		}
		counts := tape.count()[p.name]
		assert.Equal(b, []string{"PING", "enqueue"}, sorted(counts))
		assert.InDelta(b, 1800/15, counts["enqueue"], 1, "a look at one node each fifteen seconds")
		assert.InDelta(b, 5*1800/5, counts["PING"], 5, "each connection is asked every five")
		b.release(l)
		b.release(w.hold())
		b.noQueues()
	})
}

// A listening connection is given up ten seconds after the last wait, and not before.
func TestNobodyListensForEver(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		tape := b.record(p)
		for range 3 {
			l := b.hold(holder, time.Hour)
			w := p.wait(key, ttl)
			time.Sleep(time.Second)
			b.release(l)
			b.release(w.hold())
			time.Sleep(8 * time.Second)
		}
		assert.Equal(b, 3, tape.count()[p.name]["SUBSCRIBE"], "once for each node")
		time.Sleep(20 * time.Second)
		for i := range 3 {
			assert.Empty(b, b.redis(i).PubSubChannels(""))
		}
	})
}

// Waits for many keys share the connections, and each is woken for its own.
func TestWaitsForManyKeysShareAConnection(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		tape := b.record(p)
		var held []*redlock.Lock
		var waits []*waiter
		for i := range 100 {
			name := fmt.Sprint("key ", i)
			l, err := holder.TryAcquire(ctx, name, time.Hour)
			require.NoError(b, err)
			held = append(held, l)
			waits = append(waits, p.wait(name, time.Hour))
		}
		time.Sleep(500 * time.Millisecond)
		assert.Equal(b, 3, tape.count()[p.name]["SUBSCRIBE"])
		for i, l := range slices.Backward(held) {
			b.release(l)
			b.release(waits[i].hold())
			assert.False(b, i > 0 && waits[i-1].over())
		}
		b.noQueues()
	})
}
