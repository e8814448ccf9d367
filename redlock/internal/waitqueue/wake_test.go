package waitqueue_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func sorted(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }

// published counts a node's messages to waiters.
func published(b *virtual.Bed, i int) *atomic.Int32 {
	n := new(atomic.Int32)
	b.Redis(i).Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if command == "PUBLISH" {
			n.Add(1)
		}
		return false
	})
	return n
}

// A hand-over takes two round trips, one to release and wake and one to try, and about twice as
// many commands as there are nodes. A waiter that is not first is not woken, and sends nothing. The
// second waiter learns that it is second, in case the first is dead.
func TestReleaseWakesTheFirstInTheQueue(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(5, redlock.Config{})
		tape := b.Record(append(parties, holder)...)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(parties, key, 50*time.Millisecond)
		messages := published(b, 0)
		time.Sleep(150 * time.Millisecond)
		tape.Count() // by now all of them rest, until they look after a second
		for i, w := range queue {
			messages.Store(0)
			began := time.Now()
			assert.Equal(b, 20*time.Millisecond, virtual.Took(func() { require.NoError(b, l.Release(ctx)) }))
			l = w.Hold()
			assert.Equal(b, 40*time.Millisecond, w.Got.Sub(began), "two round trips")
			for _, later := range queue[i+1:] {
				require.False(b, later.Over())
			}
			time.Sleep(10 * time.Millisecond)
			counts := virtual.WithoutPings(tape.Count())
			assert.Equal(b, 5, counts[holder.Name]["release"])
			assert.Equal(b, []string{"try"}, sorted(counts[w.Name]))
			assert.GreaterOrEqual(b, counts[w.Name]["try"], 5)
			assert.LessOrEqual(b, counts[w.Name]["try"], 7, "a wake that is behind the third is answered too")
			assert.Len(b, counts, 2, "nobody else is asked anything")
			assert.EqualValues(b, min(2, len(queue)-i), messages.Load())
			holder = w.Party
		}
		time.Sleep(50 * time.Millisecond)
		messages.Store(0)
		require.NoError(b, l.Release(ctx))
		assert.Zero(b, messages.Load(), "nobody is left")
		b.NoQueues()
	})
}

// With links of different speed the wakes arrive one by one. The third one counts, and each later
// one costs at most one command.
func TestAcquireNeedsAMajorityOfWakes(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, time.Hour)
		w := p.Wait(key, time.Hour)
		time.Sleep(500 * time.Millisecond)
		for i, m := range b.Masters.All() {
			m.Delay(0, time.Duration(10*(i+1))*time.Millisecond)
		}
		tape := b.Record(p, holder)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		l = w.Hold()
		assert.Equal(b, 60*time.Millisecond, w.Got.Sub(began), "woken by three of five, granted by three of five")
		time.Sleep(time.Second)
		counts := virtual.WithoutPings(tape.Count())[p.Name]
		assert.Equal(b, []string{"try"}, sorted(counts))
		assert.LessOrEqual(b, counts["try"], 7)
		b.Release(l)
		b.NoQueues()
	})
}

// Step 1 without any other client: SET, and the script that deletes. There is no queue, no flag and
// no subscription.
func TestAcquireAloneMakesNoQueue(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		for i := range 5 {
			b.Commands(i)
		}
		l, err := p.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		b.Settle()
		for i := range 5 {
			assert.Equal(b, []string{key}, b.Redis(i).Keys())
		}
		b.Release(l)
		for i := range 5 {
			assert.Equal(b, []string{"SET", "EVALSHA"}, b.Commands(i))
			assert.Empty(b, b.Redis(i).Keys())
			assert.Empty(b, b.Redis(i).PubSubChannels(""))
		}
	})
}

// A waiter is in the queue of every node for as long as it waits. During half an hour it sends
// little: a look now and then, and PINGs on its connections.
func TestAcquireKeepsItsQueueEntryWhileItWaits(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, 24*time.Hour)
		tape := b.Record(p)
		w := p.Wait(key, ttl)
		time.Sleep(10 * time.Second)
		tape.Count()
		for range 180 {
			time.Sleep(10 * time.Second)
			for i := range 5 {
				require.Len(b, b.Queued(i, key), 1, "node %d", i)
				require.True(b, b.Redis(i).Exists("redlock:queued:{"+key+"}"))
			}
		}
		counts := tape.Count()[p.Name]
		assert.Equal(b, []string{"PING", "enqueue"}, sorted(counts))
		assert.InDelta(b, 1800/15, counts["enqueue"], 1, "a look at one node each fifteen seconds")
		assert.InDelta(b, 5*1800/5, counts["PING"], 5, "each connection is asked every five")
		b.Release(l)
		b.Release(w.Hold())
		b.NoQueues()
	})
}

// A subscription is closed ten seconds after the last wait, and not before.
func TestAcquireEndsUnusedSubscriptions(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		tape := b.Record(p)
		for range 3 {
			l := b.Hold(holder, time.Hour)
			w := p.Wait(key, ttl)
			time.Sleep(time.Second)
			b.Release(l)
			b.Release(w.Hold())
			time.Sleep(8 * time.Second)
		}
		assert.Equal(b, 3, tape.Count()[p.Name]["SUBSCRIBE"], "once for each node")
		time.Sleep(20 * time.Second)
		for i := range 3 {
			assert.Empty(b, b.Redis(i).PubSubChannels(""))
		}
	})
}

// Waits for many keys share the connections, and each is woken for its own key.
func TestAcquireOfManyKeysSharesAConnection(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		tape := b.Record(p)
		var held []*redlock.Lock
		var waits []*virtual.Waiter
		for i := range 100 {
			name := fmt.Sprint("key ", i)
			l, err := holder.TryAcquire(ctx, name, time.Hour)
			require.NoError(b, err)
			held = append(held, l)
			waits = append(waits, p.Wait(name, time.Hour))
		}
		time.Sleep(500 * time.Millisecond)
		assert.Equal(b, 3, tape.Count()[p.Name]["SUBSCRIBE"])
		for i, l := range slices.Backward(held) {
			b.Release(l)
			b.Release(waits[i].Hold())
			assert.False(b, i > 0 && waits[i-1].Over())
		}
		b.NoQueues()
	})
}
