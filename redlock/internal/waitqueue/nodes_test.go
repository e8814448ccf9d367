package waitqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// handOver releases the lock, and lets each waiter take it in order. It asserts that each hand-over
// takes at most so long.
func handOver(b *virtual.Bed, l *redlock.Lock, queue []*virtual.Waiter, most time.Duration) {
	b.Helper()
	for i, w := range queue {
		released := time.Now()
		require.NoError(b, l.Release(ctx))
		l = w.Hold()
		assert.LessOrEqual(b, w.Got.Sub(released), most, "turn %d", i)
		for _, later := range queue[i+1:] {
			require.False(b, later.Over(), "turn %d", i)
		}
	}
	require.NoError(b, l.Release(ctx))
}

// Two of five nodes that are down, or hang, do not delay a hand-over, even if that happens during
// the waits. A lane of the other three may be busy with a look for a round trip.
func TestAcquireWaitsWithoutAMinority(t *testing.T) {
	for name, fail := range map[string]func(b *virtual.Bed){
		"killed": func(b *virtual.Bed) { b.Masters.Kill(1, 3) },
		"hung":   func(b *virtual.Bed) { b.Stall(1, 3) },
	} {
		for _, before := range []bool{true, false} {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(5, redlock.Config{})
				b.Delay(time.Millisecond, time.Millisecond)
				if before {
					fail(b)
				}
				l := b.Hold(holder, time.Hour)
				queue := b.WaitInTurn(parties, key, 300*time.Millisecond)
				if !before {
					fail(b)
				}
				time.Sleep(400 * time.Millisecond)
				handOver(b, l, queue, 6*time.Millisecond)
				if name == "killed" {
					require.NoError(b, b.Masters.Restart(1, 3))
				} else {
					b.Resume(1, 3)
				}
				time.Sleep(4 * time.Minute) // entries that nobody could give up last three
				assert.Empty(b, b.Has(key))
				b.NoQueues()
			})
		}
	}
}

// A node that has forgotten the queue learns it again when the waiters' connections to it are
// restored. Hand-overs go on in order and at once.
func TestAcquireQueuesAgainOnANodeThatForgot(t *testing.T) {
	for _, which := range [][]int{{0}, {0, 1}} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(5, redlock.Config{})
			l := b.Hold(holder, time.Hour)
			queue := b.WaitInTurn(parties, key, 300*time.Millisecond)
			time.Sleep(time.Second)
			for _, i := range which {
				require.NoError(b, b.Masters.Master(i).RestartEmpty())
			}
			time.Sleep(2 * time.Second)
			// The key is free on these nodes, but not on the others. A waiter that was woken there
			// and did not come may have lost its entry again.
			for _, i := range which {
				assert.GreaterOrEqual(b, len(b.Queued(i, key)), 3, "node %d", i)
			}
			handOver(b, l, queue, 20*time.Millisecond)
			b.NoQueues()
		})
	}
}

// Queues that differ do no harm. If two nodes have no queue, the others wake the same waiter. If
// two have lost the first entry, a majority decides.
func TestAcquireWithQueuesThatDiffer(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(5, redlock.Config{})
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(parties, key, 20*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for i := range 2 {
			b.Redis(i).Del("redlock:queue:{" + key + "}")
			b.Redis(i).Del("redlock:queued:{" + key + "}")
		}
		handOver(b, l, queue, 0)
		b.NoQueues()
	})
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(5, redlock.Config{})
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(parties, key, 20*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for i := range 2 { // on these the second waiter is first
			_, err := b.Redis(i).ZRem("redlock:queue:{"+key+"}", b.Queued(i, key)[0])
			require.NoError(b, err)
		}
		handOver(b, l, queue, virtual.NodeTimeout)
		b.NoQueues()
	})
	// Each node has another first entry, and no majority agrees. All waiters still get the lock,
	// one after the other.
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(5, redlock.Config{})
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(parties, key, 20*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for i := range 5 {
			for _, who := range b.Queued(i, key)[:i] {
				_, err := b.Redis(i).ZRem("redlock:queue:{"+key+"}", who)
				require.NoError(b, err)
			}
		}
		tape := b.Record(parties...)
		b.Release(l)
		assert.LessOrEqual(b, virtual.Took(func() { virtual.Finish(b, queue...) }), 5*time.Second)
		for _, c := range virtual.WithoutPings(tape.Count()) {
			assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"], 60, "%v", c)
		}
		b.NoQueues()
	})
}

// Without a quorum no waiter is woken and none spins. They look after pauses, and when the nodes
// are back they have their turns.
func TestAcquireWhileAMajorityIsGone(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(3, redlock.Config{})
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(parties, key, 300*time.Millisecond)
		b.Masters.Kill(0, 1, 2)
		tape := b.Record(parties...)
		time.Sleep(10 * time.Second)
		for _, c := range virtual.WithoutPings(tape.Count()) {
			assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"]+c["SET"], 10*2*40, "%v: 20 tries a second on two nodes, and the clean-up", c)
		}
		require.NoError(b, b.Masters.Restart(0, 1, 2))
		time.Sleep(3 * time.Second)
		released := time.Now()
		_ = l.Release(ctx) // its connections are broken, and the release is sent again
		virtual.Finish(b, queue...)
		assert.LessOrEqual(b, time.Since(released), 2*time.Second)
		time.Sleep(2 * time.Second) // a pending delivery is sent again within a second
		assert.Empty(b, b.Has(key))
		b.NoQueues()
	})
}

// A node in quarantine wakes nobody, and its votes do not count. A waiter gets the lock when the
// quarantine ends, and sends few commands until then.
func TestAcquireWaitsForTheEndOfAQuarantine(t *testing.T) {
	for _, cfg := range []redlock.Config{virtual.Guarded, {RestartGuard: virtual.GuardFor, Fencing: true}} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			holder, parties := b.ReadyParty(cfg), b.ReadyParties(3, cfg)
			time.Sleep(2 * time.Second)
			l, err := holder.TryAcquire(ctx, key, virtual.GuardFor)
			require.NoError(b, err)
			queue := make([]*virtual.Waiter, 3)
			for i, p := range parties {
				queue[i] = p.Wait(key, virtual.GuardFor)
				time.Sleep(100 * time.Millisecond)
			}
			for i := range 3 {
				require.NoError(b, b.Masters.Master(i).RestartEmpty())
			}
			began := time.Now()
			tape := b.Record(parties...)
			_ = l.Release(ctx) // by the two other nodes
			// A server's uptime has a granularity of a second. The later in a second it is asked,
			// the less of that second remains.
			time.Sleep(time.Until(began.Add(virtual.Quarantine - time.Second - time.Millisecond)))
			for _, w := range queue {
				assert.False(b, w.Over())
			}
			for _, c := range virtual.WithoutPings(tape.Count()) {
				assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"], 11*5*2*25, "%v: some 20 tries a second, and giving back", c)
			}
			virtual.Finish(b, queue...)
			assert.LessOrEqual(b, time.Since(began), virtual.Quarantine+2*time.Second)
			b.NoQueues()
		})
	}
}

// Three nodes include one in quarantine, whose wake does not help to make a majority of wakes.
func TestAcquireDoesNotCountAWakeFromAQuarantine(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(virtual.Guarded), b.ReadyParty(virtual.Guarded)
		l, err := holder.TryAcquire(ctx, key, virtual.GuardFor)
		require.NoError(b, err)
		b.Settle()
		w := p.Wait(key, virtual.GuardFor)
		time.Sleep(500 * time.Millisecond)
		require.NoError(b, b.Masters.Master(2).RestartEmpty())
		time.Sleep(1100 * time.Millisecond) // the client has met the server by then
		b.Masters.Master(0).LoseMessages(-1)
		tape := b.Record(p)
		require.NoError(b, l.Release(ctx)) // node 1 wakes it, and node 2 would have
		b.Settle()
		assert.Zero(b, virtual.WithoutPings(tape.Count())[p.Name]["try"], "one that counts")
		l = w.Hold()
		assert.LessOrEqual(b, w.Got.Sub(w.Begun), 3*time.Second+lookPause)
		require.NoError(b, l.Release(ctx))
		b.NoQueues()
	})
}
