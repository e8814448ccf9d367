package waitqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A thousand goroutines of one Redlock hand the lock over within it, in order. Each turn costs one
// SET and one release on each node, and a round trip for each. The Redlock has no queue entry on
// the nodes, and no subscription.
func TestAcquireByAThousandGoroutines(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		b.Delay(time.Millisecond, time.Millisecond)
		l := b.Hold(p, time.Hour)
		require.NoError(b, l.Release(ctx))
		time.Sleep(10 * time.Millisecond)
		l, err := p.Acquire(ctx, key, time.Hour)
		require.NoError(b, err)
		const n = 1000
		var whose []int
		done := make(chan error, n)
		for i := range n {
			go func() {
				l, err := p.Acquire(ctx, key, time.Hour)
				if err == nil {
					whose = append(whose, i) // unguarded: the lock is the guard
					time.Sleep(time.Millisecond)
					err = l.Release(ctx)
				}
				done <- err
			}()
			b.Settle()
		}
		tape := b.Record(p)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		for range n {
			require.NoError(b, <-done)
		}
		assert.Equal(b, 2*time.Millisecond+n*5*time.Millisecond, time.Since(began))
		time.Sleep(10 * time.Millisecond)
		assert.Equal(b, map[string]map[string]int{p.Name: {"SET": 3 * n, "release": 3 * (n + 1)}}, tape.Count())
		for i := range n {
			require.Equal(b, i, whose[i])
		}
		for i := range 3 {
			assert.Empty(b, b.Redis(i).Keys())
			assert.Empty(b, b.Redis(i).PubSubChannels(""))
		}
	})
}

// While another client waits, one goroutine has a turn, and then the key goes to that client.
func TestAcquireInALocalQueueLetsOthersIn(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		ours, theirs := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
		var queue []*virtual.Waiter
		for i := range 20 {
			p := ours
			if i == 3 || i == 4 {
				p = theirs
			}
			queue = append(queue, p.Wait(key, time.Hour))
			time.Sleep(20 * time.Millisecond)
		}
		got := order(b, l, queue)
		assert.Equal(b, 0, got[0])
		assert.Equal(b, 3, got[1])
		assert.Equal(b, 1, got[2])
		assert.Equal(b, 4, got[3], "as they take turns")
		assert.Equal(b, []int{2, 5, 6, 7, 8, 9}, got[4:10], "and within each first come first served")
		b.NoQueues()
	})
}

// The local queue goes on when a lock ends, however it ended: its validity is over, it is found
// lost, or it is released, once or twice.
func TestAcquireInALocalQueueGoesOnWhenALockEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(b *virtual.Bed, l *redlock.Lock)
		after time.Duration
	}{
		"released twice": {func(b *virtual.Bed, l *redlock.Lock) {
			require.NoError(b, l.Release(ctx))
			assert.ErrorIs(b, l.Release(ctx), redlock.ErrReleased)
		}, 0},
		// Validity is over before the key is: by the drift of 102 ms.
		"expired": {func(*virtual.Bed, *redlock.Lock) {}, ttl},
		"lost": {func(b *virtual.Bed, l *redlock.Lock) {
			for i := range 5 {
				b.Redis(i).Del(key)
			}
			assert.ErrorIs(b, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		}, 0},
	} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			p := b.ReadyParty(redlock.Config{})
			l, err := p.Acquire(ctx, key, ttl)
			require.NoError(b, err)
			taken := time.Now()
			first := p.Wait(key, time.Hour)
			b.Settle()
			second := p.Wait(key, time.Hour)
			b.Settle()
			tc.end(b, l)
			next := first.Hold()
			assert.GreaterOrEqual(b, first.Got.Sub(taken), tc.after, name)
			assert.LessOrEqual(b, first.Got.Sub(taken), tc.after+5*time.Millisecond, name)
			assert.False(b, second.Over(), name)
			b.Release(next)
			b.Release(second.Hold())
			b.NoQueues()
		})
	}
}

// Waiters in the local queue whose context ends leave it without a command to the nodes, and
// without a gap.
func TestAcquireCancelledLeavesNoGapInTheLocalQueue(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		l, err := p.Acquire(ctx, key, time.Hour)
		require.NoError(b, err)
		var queue, stay []*virtual.Waiter
		for range 30 {
			queue = append(queue, p.Wait(key, time.Hour))
			b.Settle()
		}
		tape := b.Record(p)
		for i, w := range queue {
			if i%3 == 0 {
				stay = append(stay, w)
				continue
			}
			w.Cancel()
			<-w.Done
			assert.ErrorIs(b, w.Err, context.Canceled)
			assert.ErrorIs(b, w.Err, redlock.ErrHeld)
		}
		assert.Zero(b, tape.Total())
		for _, w := range stay {
			b.Release(l)
			l = w.Hold()
		}
		b.Release(l)
		assert.Equal(b, map[string]int{"SET": 30, "release": 33}, tape.Count()[p.Name])
		b.NoQueues()
	})
}

func TestAcquireTakesTurnsWithinOneRedlock(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(time.Millisecond, time.Millisecond)
		l := b.Acquire(key, time.Hour)
		var order []int
		done := make(chan error, 10)
		for i := range 10 {
			go func() {
				got, err := b.Redlock.Acquire(ctx, key, time.Hour)
				if err == nil {
					order = append(order, i)
					time.Sleep(time.Second)
					err = got.Release(ctx)
				}
				done <- err
			}()
			time.Sleep(50 * time.Millisecond)
		}
		b.Settle()
		for i := range 5 {
			b.Commands(i)
		}
		time.Sleep(2 * time.Second)
		b.Settle()
		assert.LessOrEqual(t, len(b.Commands(0)), 2*2*60, "only the first in line asks: a few tens of attempts a second at the most")
		start := time.Now()
		require.NoError(t, l.Release(ctx))
		for range 10 {
			require.NoError(t, <-done)
		}
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order, "first come first served")
		// Each client hands over as it releases: one round trip to release, one to acquire.
		assert.LessOrEqual(t, time.Since(start), 10*(time.Second+10*time.Millisecond))
	})
}

func TestAcquireCancelledMakesRoomInTheLocalQueue(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Hour)
		var cancels []context.CancelFunc
		waits := make([]chan error, 4)
		for i := range waits {
			c, cancel := context.WithCancel(ctx)
			defer cancel()
			cancels = append(cancels, cancel)
			waits[i] = make(chan error, 1)
			go func() {
				got, err := b.Redlock.Acquire(c, key, time.Hour)
				if err == nil {
					err = got.Release(ctx)
				}
				waits[i] <- err
			}()
			time.Sleep(time.Second)
		}
		for _, i := range []int{1, 0, 3} { // in the middle, the first, the last
			cancels[i]()
			err := <-waits[i]
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, redlock.ErrHeld)
		}
		require.NoError(t, l.Release(ctx))
		assert.NoError(t, <-waits[2])
	})
}

// A goroutine that takes the lock again and again does not overtake waiting goroutines of the same
// Redlock.
func TestAcquireRepeatedDoesNotOvertakeTheLocalQueue(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(time.Millisecond, time.Millisecond)
		c, cancel := context.WithCancel(ctx)
		var turns atomic.Int32
		stopped := make(chan error, 1)
		go func() {
			for c.Err() == nil {
				l, err := b.Redlock.Acquire(ctx, key, time.Minute)
				if err != nil {
					stopped <- err
					return
				}
				turns.Add(1)
				time.Sleep(5 * time.Millisecond)
				if err := l.Release(ctx); err != nil {
					stopped <- err
					return
				}
			}
			stopped <- nil
		}()
		for range 20 {
			time.Sleep(37 * time.Millisecond)
			before := turns.Load()
			l, err := b.Redlock.Acquire(ctx, key, time.Minute)
			require.NoError(t, err)
			assert.LessOrEqual(t, turns.Load()-before, int32(1), "one who was there before")
			require.NoError(t, l.Release(ctx))
		}
		cancel()
		require.NoError(t, <-stopped)
	})
}
