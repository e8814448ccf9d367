package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// lookPause is how long after a look at one node that says the key is free the others are
// looked at: they are about to say so themselves.
const lookPause = nodeTimeout

// looks is when a wait looks by itself: after a second, then each time after as long again
// as the last pause, twice, up to fifteen seconds.
func looks(after time.Duration) time.Duration {
	at, pause := time.Second, time.Second
	for at < after {
		pause = min(2*pause, 15*time.Second)
		at += pause
	}
	return at
}

// Case 21: whatever is lost, who waits has the lock by looking.
func TestALostWakeCostsTimeOnly(t *testing.T) {
	for _, after := range []time.Duration{500, 1500, 3500, 7500, 20000, 100000} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			after *= time.Millisecond
			l := b.hold(b.ready(redlock.Config{}), time.Hour)
			p := b.ready(redlock.Config{})
			w := p.wait(key, ttl)
			time.Sleep(after)
			for _, m := range b.masters.All() {
				m.LoseMessages(-1)
			}
			b.release(l)
			l = w.hold()
			assert.Equal(b, looks(after)+lookPause, w.got.Sub(w.begun))
			assert.LessOrEqual(b, w.got.Sub(w.begun)-after, max(min(after, 15*time.Second), time.Second)+lookPause)
			b.release(l)
			b.noQueues()
		})
	}
}

// Two of five messages lost cost nothing, three of five a look at the other nodes.
func TestWakesLostOnSomeNodes(t *testing.T) {
	for lost, want := range []time.Duration{0, 0, 0, lookPause, lookPause} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
			l := b.hold(holder, time.Hour)
			w := p.wait(key, ttl)
			time.Sleep(1500 * time.Millisecond)
			for i := range lost {
				b.masters.Master(i).LoseMessages(-1)
			}
			tape := b.record(p)
			released := time.Now()
			b.release(l)
			l = w.hold()
			assert.Equal(b, want, w.got.Sub(released), "%d lost", lost)
			assert.LessOrEqual(b, tape.total(), 3*5)
			b.release(l)
			b.noQueues()
		})
	}
}

// A late message is as good, and if it comes after a look, or after the end, it does no
// harm.
func TestAWakeIsLate(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 100 * time.Millisecond,
		900 * time.Millisecond: 900 * time.Millisecond,
		// After five quiet seconds the connection is asked whether it is still there, and
		// given up when it has not said so for a second: its answer is behind the message.
		2500 * time.Millisecond: 2 * time.Second,
		8 * time.Second:         2 * time.Second,
	} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
			l := b.hold(holder, time.Hour)
			w := p.wait(key, ttl)
			time.Sleep(4 * time.Second)
			for _, m := range b.masters.All() {
				m.DelayMessages(late)
			}
			tape := b.record(p, holder)
			released := time.Now()
			b.release(l)
			l = w.hold()
			assert.Equal(b, want, w.got.Sub(released))
			b.release(l)
			time.Sleep(20 * time.Second)
			assert.Empty(b, b.has(key))
			total := 0
			for _, counts := range asked(tape.count()) {
				for _, n := range counts {
					total += n
				}
			}
			assert.LessOrEqual(b, total, 5*5, "two releases, a try, at most a look and leaving again")
			b.noQueues()
		})
	}
}

// A connection that broke is made again at once, and then the place is asked for again.
func TestABrokenSubscriptionIsMadeAgain(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(holder, time.Hour)
		w := p.wait(key, ttl)
		time.Sleep(1500 * time.Millisecond)
		tape := b.record(p)
		for _, m := range b.masters.All() {
			m.BreakSubscriptions()
		}
		time.Sleep(20 * time.Millisecond)
		counts := tape.count()[p.name]
		assert.LessOrEqual(b, counts["SUBSCRIBE"], 10, "go-redis makes one of its own before it says so")
		assert.LessOrEqual(b, counts["enqueue"]+counts["try"], 6*5, "while too few can wake it, it looks")
		released := time.Now()
		b.release(l)
		l = w.hold()
		assert.LessOrEqual(b, w.got.Sub(released), 50*time.Millisecond)
		b.release(l)
		b.noQueues()
	})
}

// What is said while it is broken is lost, and PUBLISH counts nobody: the place is gone,
// and asked for again it tells that the key is free.
func TestASubscriptionBreaksDuringTheRelease(t *testing.T) {
	for _, broken := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 2}, {3, 4}} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
			l := b.hold(holder, time.Hour)
			w := p.wait(key, ttl)
			time.Sleep(1500 * time.Millisecond)
			for _, i := range broken {
				b.masters.Master(i).BreakSubscriptions()
			}
			released := time.Now()
			require.NoError(b, l.Release(ctx)) // at the same instant
			l = w.hold()
			assert.LessOrEqual(b, w.got.Sub(released), 20*time.Millisecond)
			b.release(l)
			b.noQueues()
		})
	}
}

// Connections that break all the time do not make anybody spin.
func TestSubscriptionsThatBreakAllTheTime(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder, p := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(holder, time.Hour)
		tape := b.record(p)
		w := p.wait(key, ttl)
		time.Sleep(time.Second)
		tape.count()
		for range 1000 {
			for _, m := range b.masters.All() {
				m.BreakSubscriptions()
			}
			time.Sleep(10 * time.Millisecond)
		}
		counts := tape.count()[p.name]
		assert.LessOrEqual(b, counts["SUBSCRIBE"], 2*5*1000, "one each ten milliseconds, and go-redis' own")
		assert.LessOrEqual(b, counts["enqueue"]+counts["try"], 5*1100)
		b.release(l)
		b.release(w.hold())
		b.noQueues()
	})
}
