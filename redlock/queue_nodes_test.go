package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// handOver releases the lock to each who waits, in their order, and asserts how long each
// hand-over takes at the most.
func handOver(b *bed, l *redlock.Lock, queue []*waiter, most time.Duration) {
	b.Helper()
	for i, w := range queue {
		released := time.Now()
		require.NoError(b, l.Release(ctx))
		l = w.hold()
		assert.LessOrEqual(b, w.got.Sub(released), most, "turn %d", i)
		for _, later := range queue[i+1:] {
			require.False(b, later.over(), "turn %d", i)
		}
	}
	require.NoError(b, l.Release(ctx))
}

// Two of five nodes down, or hung, cost a hand-over nothing, also if that happens while
// they wait. It may find a lane of the other three busy with somebody's look, for a round
// trip.
func TestAMinorityOfNodesIsGone(t *testing.T) {
	for name, fail := range map[string]func(b *bed){
		"killed": func(b *bed) { b.masters.Kill(1, 3) },
		"hung":   func(b *bed) { b.stall(1, 3) },
	} {
		for _, before := range []bool{true, false} {
			virtually(t, 5, redlock.Config{}, func(b *bed) {
				holder, parties := b.ready(redlock.Config{}), b.crowd(5, redlock.Config{})
				b.delay(time.Millisecond, time.Millisecond)
				if before {
					fail(b)
				}
				l := b.hold(holder, time.Hour)
				queue := b.line(parties, key, 300*time.Millisecond)
				if !before {
					fail(b)
				}
				time.Sleep(400 * time.Millisecond)
				handOver(b, l, queue, 6*time.Millisecond)
				if name == "killed" {
					require.NoError(b, b.masters.Restart(1, 3))
				} else {
					b.masters.Master(1).Resume()
					b.masters.Master(3).Resume()
				}
				time.Sleep(4 * time.Minute) // places that nobody could give up are kept for three
				assert.Empty(b, b.has(key))
				b.noQueues()
			})
		}
	}
}

// A node that has forgotten the queue learns it again from those who wait, when their
// connections to it are made again, and hand-overs go on in order and at once.
func TestANodeForgetsTheQueue(t *testing.T) {
	for _, which := range [][]int{{0}, {0, 1}} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, parties := b.ready(redlock.Config{}), b.crowd(5, redlock.Config{})
			l := b.hold(holder, time.Hour)
			queue := b.line(parties, key, 300*time.Millisecond)
			time.Sleep(time.Second)
			for _, i := range which {
				require.NoError(b, b.masters.Master(i).RestartEmpty())
			}
			time.Sleep(2 * time.Second)
			// The key is free there, and who was woken and did not come, as the others are
			// not, may have lost its place again.
			for _, i := range which {
				assert.GreaterOrEqual(b, len(b.queued(i, key)), 3, "node %d", i)
			}
			handOver(b, l, queue, 20*time.Millisecond)
			b.noQueues()
		})
	}
}

// Queues that differ are no harm: with those of two nodes gone the others wake the same
// one, and where two have lost the first of them a majority decides.
func TestQueuesThatDiffer(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, parties := b.ready(redlock.Config{}), b.crowd(5, redlock.Config{})
		l := b.hold(holder, time.Hour)
		queue := b.line(parties, key, 20*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for i := range 2 {
			b.redis(i).Del("redlock:queue:{" + key + "}")
			b.redis(i).Del("redlock:queued:{" + key + "}")
		}
		handOver(b, l, queue, 0)
		b.noQueues()
	})
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, parties := b.ready(redlock.Config{}), b.crowd(5, redlock.Config{})
		l := b.hold(holder, time.Hour)
		queue := b.line(parties, key, 20*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for i := range 2 { // the second is first there
			_, err := b.redis(i).ZRem("redlock:queue:{"+key+"}", b.queued(i, key)[0])
			require.NoError(b, err)
		}
		handOver(b, l, queue, nodeTimeout)
		b.noQueues()
	})
	// Each node has another of them, and no majority agrees: they have it all the same,
	// one after the other.
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, parties := b.ready(redlock.Config{}), b.crowd(5, redlock.Config{})
		l := b.hold(holder, time.Hour)
		queue := b.line(parties, key, 20*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		for i := range 5 {
			for _, who := range b.queued(i, key)[:i] {
				_, err := b.redis(i).ZRem("redlock:queue:{"+key+"}", who)
				require.NoError(b, err)
			}
		}
		tape := b.record(parties...)
		b.release(l)
		assert.LessOrEqual(b, took(func() { finish(b, queue...) }), 5*time.Second)
		for _, c := range asked(tape.count()) {
			assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"], 60, "%v", c)
		}
		b.noQueues()
	})
}

// Without a quorum nobody is woken and nobody spins: they look after pauses, and when the
// nodes are back they have their turns.
func TestAMajorityIsGoneForAWhile(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, parties := b.ready(redlock.Config{}), b.crowd(3, redlock.Config{})
		l := b.hold(holder, time.Hour)
		queue := b.line(parties, key, 300*time.Millisecond)
		b.masters.Kill(0, 1, 2)
		tape := b.record(parties...)
		time.Sleep(10 * time.Second)
		for _, c := range asked(tape.count()) {
			assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"]+c["SET"], 10*2*40, "%v: 20 tries a second on two nodes, and the clean-up", c)
		}
		require.NoError(b, b.masters.Restart(0, 1, 2))
		time.Sleep(3 * time.Second)
		released := time.Now()
		_ = l.Release(ctx) // its own connections are broken, and it is sent again
		finish(b, queue...)
		assert.LessOrEqual(b, time.Since(released), 2*time.Second)
		time.Sleep(2 * time.Second) // what is owed to a node is sent again within one
		assert.Empty(b, b.has(key))
		b.noQueues()
	})
}

// A node in quarantine wakes nobody, and its votes do not count; whoever waits has the lock
// when the quarantine ends, and asks for little until then.
func TestWaitingForTheEndOfAQuarantine(t *testing.T) {
	for _, cfg := range []redlock.Config{guarded, {RestartGuard: guardFor, Fencing: true}} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, parties := b.ready(cfg), b.crowd(3, cfg)
			time.Sleep(2 * time.Second)
			l, err := holder.TryAcquire(ctx, key, guardFor)
			require.NoError(b, err)
			queue := make([]*waiter, 3)
			for i, p := range parties {
				queue[i] = p.wait(key, guardFor)
				time.Sleep(100 * time.Millisecond)
			}
			for i := range 3 {
				require.NoError(b, b.masters.Master(i).RestartEmpty())
			}
			began := time.Now()
			tape := b.record(parties...)
			_ = l.Release(ctx) // by two
			// The later somebody asks in a second of the server's, the less of the second for the
			// granularity of its uptime is left.
			time.Sleep(time.Until(began.Add(quarantine - time.Second - time.Millisecond)))
			for _, w := range queue {
				assert.False(b, w.over())
			}
			for _, c := range asked(tape.count()) {
				assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"], 11*5*2*25, "%v: some 20 tries a second, and giving back", c)
			}
			finish(b, queue...)
			assert.LessOrEqual(b, time.Since(began), quarantine+2*time.Second)
			b.noQueues()
		})
	}
}

// The wake of one node in quarantine beside two others is not a majority of wakes.
func TestAWakeFromAQuarantineDoesNotCount(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(guarded), b.ready(guarded)
		l, err := holder.TryAcquire(ctx, key, guardFor)
		require.NoError(b, err)
		b.settle()
		w := p.wait(key, guardFor)
		time.Sleep(500 * time.Millisecond)
		require.NoError(b, b.masters.Master(2).RestartEmpty())
		time.Sleep(1100 * time.Millisecond) // it has met it
		b.masters.Master(0).LoseMessages(-1)
		tape := b.record(p)
		require.NoError(b, l.Release(ctx)) // node 1 wakes, and 2 had
		b.settle()
		assert.Zero(b, asked(tape.count())[p.name]["try"], "one that counts")
		l = w.hold()
		assert.LessOrEqual(b, w.got.Sub(w.begun), 3*time.Second+lookPause)
		require.NoError(b, l.Release(ctx))
		b.noQueues()
	})
}
