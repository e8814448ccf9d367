package waitqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// lookPause is the pause before the other nodes are looked at, after one node has reported a free
// key. They are about to report it themselves.
const lookPause = virtual.NodeTimeout

// looks returns when a wait looks by itself: first after a second, then each time after twice the
// last pause, which is at most fifteen seconds.
func looks(after time.Duration) time.Duration {
	at, pause := time.Second, time.Second
	for at < after {
		pause = min(2*pause, 15*time.Second)
		at += pause
	}
	return at
}

// waiting calls f with five masters, while one party waits for a lock that another one holds.
func waiting(t *testing.T, f func(b *virtual.Bed, l *redlock.Lock, w *virtual.Waiter)) {
	t.Helper()
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		f(b, b.Hold(holder, time.Hour), p.Wait(key, ttl))
	})
}

// Case 21: if a wake-up is lost, at any time, a waiter gets the lock by looking.
func TestAcquireWithoutItsWakeTakesLonger(t *testing.T) {
	for _, after := range []time.Duration{500, 1500, 3500, 7500, 20000, 100000} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			after *= time.Millisecond
			l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
			p := b.ReadyParty(redlock.Config{})
			w := p.Wait(key, ttl)
			time.Sleep(after)
			for _, m := range b.Masters.All() {
				m.LoseMessages(-1)
			}
			b.Release(l)
			l = w.Hold()
			assert.Equal(b, looks(after)+lookPause, w.Got.Sub(w.Begun))
			assert.LessOrEqual(b, w.Got.Sub(w.Begun)-after, max(min(after, 15*time.Second), time.Second)+lookPause)
			b.Release(l)
			b.NoQueues()
		})
	}
}

// Two of five lost messages cost nothing. Three of five cost a look at the other nodes.
func TestAcquireWithWakesLostOnSomeNodes(t *testing.T) {
	for lost, want := range []time.Duration{0, 0, 0, lookPause, lookPause} {
		waiting(t, func(b *virtual.Bed, l *redlock.Lock, w *virtual.Waiter) {
			time.Sleep(1500 * time.Millisecond)
			for i := range lost {
				b.Masters.Master(i).LoseMessages(-1)
			}
			tape := b.Record(w.Party)
			released := time.Now()
			b.Release(l)
			l = w.Hold()
			assert.Equal(b, want, w.Got.Sub(released), "%d lost", lost)
			assert.LessOrEqual(b, tape.Total(), 3*5)
			b.Release(l)
			b.NoQueues()
		})
	}
}

// A late message works too. If it comes after a look, or after the end, it does no harm.
func TestAcquireWithALateWake(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 100 * time.Millisecond,
		900 * time.Millisecond: 900 * time.Millisecond,
		// After five quiet seconds the connection gets a PING. If the answer takes more than a
		// second, because it is behind the message, the connection is given up.
		2500 * time.Millisecond: 2 * time.Second,
		8 * time.Second:         2 * time.Second,
	} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
			l := b.Hold(holder, time.Hour)
			w := p.Wait(key, ttl)
			time.Sleep(4 * time.Second)
			for _, m := range b.Masters.All() {
				m.DelayMessages(late)
			}
			tape := b.Record(p, holder)
			released := time.Now()
			b.Release(l)
			l = w.Hold()
			assert.Equal(b, want, w.Got.Sub(released))
			b.Release(l)
			time.Sleep(20 * time.Second)
			assert.Empty(b, b.Has(key))
			total := 0
			for _, counts := range virtual.WithoutPings(tape.Count()) {
				for _, n := range counts {
					total += n
				}
			}
			assert.LessOrEqual(b, total, 5*5, "two releases, a try, at most a look and leaving again")
			b.NoQueues()
		})
	}
}

// A broken connection is restored at once, and then the queue entry is asked for again.
func TestAcquireRestoresABrokenSubscription(t *testing.T) {
	waiting(t, func(b *virtual.Bed, l *redlock.Lock, w *virtual.Waiter) {
		time.Sleep(1500 * time.Millisecond)
		tape := b.Record(w.Party)
		for _, m := range b.Masters.All() {
			m.BreakSubscriptions()
		}
		time.Sleep(20 * time.Millisecond)
		counts := tape.Count()[w.Name]
		assert.LessOrEqual(b, counts["SUBSCRIBE"], 10, "go-redis makes one of its own before it says so")
		assert.LessOrEqual(b, counts["enqueue"]+counts["try"], 6*5, "while too few can wake it, it looks")
		released := time.Now()
		b.Release(l)
		l = w.Hold()
		assert.LessOrEqual(b, w.Got.Sub(released), 50*time.Millisecond)
		b.Release(l)
		b.NoQueues()
	})
}

// A message that is sent while the connection is broken is lost, and PUBLISH counts no
// subscriber. The queue entry is gone, and asking for it again reports that the key is free.
func TestAcquireWhenASubscriptionBreaksDuringTheRelease(t *testing.T) {
	for _, broken := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 2}, {3, 4}} {
		waiting(t, func(b *virtual.Bed, l *redlock.Lock, w *virtual.Waiter) {
			time.Sleep(1500 * time.Millisecond)
			for _, i := range broken {
				b.Masters.Master(i).BreakSubscriptions()
			}
			released := time.Now()
			require.NoError(b, l.Release(ctx)) // at the same instant
			l = w.Hold()
			assert.LessOrEqual(b, w.Got.Sub(released), 20*time.Millisecond)
			b.Release(l)
			b.NoQueues()
		})
	}
}

// No waiter spins if connections break all the time.
func TestAcquireWithSubscriptionsThatBreakAllTheTime(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, time.Hour)
		tape := b.Record(p)
		w := p.Wait(key, ttl)
		time.Sleep(time.Second)
		tape.Count()
		for range 1000 {
			for _, m := range b.Masters.All() {
				m.BreakSubscriptions()
			}
			time.Sleep(10 * time.Millisecond)
		}
		counts := tape.Count()[p.Name]
		assert.LessOrEqual(b, counts["SUBSCRIBE"], 2*5*1000, "one each ten milliseconds, and go-redis' own")
		assert.LessOrEqual(b, counts["enqueue"]+counts["try"], 5*1100)
		b.Release(l)
		b.Release(w.Hold())
		b.NoQueues()
	})
}
