package redlock_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// takenFor asserts that other clients cannot lock the key before d has passed since began, and that
// they can once the drift margin of d has passed, too.
func takenFor(b *virtual.Bed, began time.Time, d time.Duration) {
	b.Helper()
	other := b.NewRedlock(redlock.Config{})
	time.Sleep(time.Until(began.Add(d)) - time.Millisecond)
	_, err := other.TryAcquire(ctx, key, time.Second)
	require.ErrorIs(b, err, redlock.ErrHeld, "1 ms before its end")
	time.Sleep(time.Until(began.Add(clock.DefaultDrift.For(d) + 2*time.Millisecond)))
	l, err := other.TryAcquire(ctx, key, time.Second)
	require.NoError(b, err, "after its end")
	require.NoError(b, l.Release(ctx))
}

func TestReleaseAfterKeepsTheKeyTaken(t *testing.T) {
	for _, cfg := range []redlock.Config{{}, fencing, {Fair: true}, {KeyPrefix: "locks:"}} {
		for _, d := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 3*time.Second + 1, time.Minute, 24 * time.Hour} {
			virtual.Run(t, 5, cfg, func(b *virtual.Bed) {
				l := b.Acquire(key, ttl)
				l.KeepAlive()
				time.Sleep(time.Second)
				began := time.Now()
				require.NoError(b, l.ReleaseAfter(ctx, d))
				assert.Equal(b, redlock.ErrReleased, context.Cause(l.Context()))
				assert.False(b, l.Valid())
				b.Settle()
				for i := range 5 {
					b.Commands(i)
				}
				assert.ErrorIs(b, l.Release(ctx), redlock.ErrReleased)
				assert.ErrorIs(b, l.ReleaseAfter(ctx, d), redlock.ErrReleased)
				assert.ErrorIs(b, l.Extend(ctx, ttl), redlock.ErrReleased)
				b.Settle()
				assert.Empty(b, b.Commands(0), "nothing is sent for a lock that was given up")
				if cfg.KeyPrefix == "" {
					takenFor(b, began, d)
				}
			})
		}
	}
}

// The process that has left the key taken may end. Close, which releases what is held, leaves it.
func TestReleaseAfterOutlivesItsProcess(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		r := b.NewRedlock(redlock.Config{})
		l := b.Take(r)
		began := time.Now()
		require.NoError(b, l.ReleaseAfter(ctx, time.Minute))
		require.NoError(b, r.Close())
		takenFor(b, began, time.Minute)
		assert.ErrorIs(b, l.ReleaseAfter(ctx, time.Minute), redlock.ErrClosed)
	})
}

// Nobody but the holder of a fleet does the work, however short it is, though their timers fire
// seconds apart.
func TestReleaseAfterOncePerFiring(t *testing.T) {
	const instances, apart = 40, 10 * time.Second
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		var mu sync.Mutex
		done := map[int]int{} // by firing
		var running sync.WaitGroup
		for i := range instances {
			late := apart * time.Duration(i) / instances // what this one's clock is behind
			r := b.NewRedlock(redlock.Config{})
			running.Go(func() {
				time.Sleep(late)
				for firing := range 3 {
					l, err := r.TryAcquire(ctx, key, 5*time.Second)
					if err == nil {
						mu.Lock()
						done[firing]++
						mu.Unlock()
						time.Sleep(time.Millisecond)
						assert.NoError(b, l.ReleaseAfter(ctx, 15*time.Second))
					} else {
						assert.ErrorIs(b, err, redlock.ErrHeld)
					}
					time.Sleep(time.Minute)
				}
			})
		}
		running.Wait()
		assert.Equal(b, map[int]int{0: 1, 1: 1, 2: 1}, done)
	})
}

// A waiter gets the key right after it, whether that is sooner than it had learned, or later, and
// whether it came before ReleaseAfter or after. The next waiter follows.
func TestReleaseAfterHandsOverToAWaiter(t *testing.T) {
	for _, d := range []time.Duration{50 * time.Millisecond, 2 * time.Second, 15 * time.Second, time.Minute} {
		for _, late := range []time.Duration{0, d / 2} {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				parties := b.ReadyParties(2, redlock.Config{})
				l := b.Acquire(key, ttl)
				var queue []*virtual.Waiter
				if late == 0 {
					queue = b.WaitInTurn(parties, key, 100*time.Millisecond)
				}
				time.Sleep(time.Second)
				began := time.Now()
				require.NoError(b, l.ReleaseAfter(ctx, d))
				if late > 0 {
					time.Sleep(late)
					queue = b.WaitInTurn(parties, key, time.Millisecond)
				}
				got := queue[0].Hold()
				assert.GreaterOrEqual(b, queue[0].Got.Sub(began), d)
				assert.LessOrEqual(b, queue[0].Got.Sub(began), clock.DefaultDrift.For(d)+10*time.Millisecond)
				b.Release(got)
				b.Release(queue[1].Hold())
				b.NoQueues()
			})
		}
	}
}

// A dead waiter that is the first does not keep the message from the next one.
func TestReleaseAfterTellsTheFirstLivingWaiter(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		parties := b.ReadyParties(3, redlock.Config{})
		l := b.Acquire(key, time.Hour)
		queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
		parties[0].Crash()
		b.Settle()
		began := time.Now()
		require.NoError(b, l.ReleaseAfter(ctx, time.Second))
		b.Release(queue[1].Hold())
		assert.LessOrEqual(b, queue[1].Got.Sub(began), 1100*time.Millisecond)
		b.Release(queue[2].Hold())
		queue[0].Cancel()
	})
}

// Nothing is left of a queue in which all are dead.
func TestReleaseAfterRemovesTheQueueOfTheDead(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		parties := b.ReadyParties(2, redlock.Config{})
		l := b.Acquire(key, time.Hour)
		queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
		for _, p := range parties {
			p.Crash()
		}
		b.Settle()
		require.NoError(b, l.ReleaseAfter(ctx, time.Minute))
		b.NoQueues()
		queue[0].Cancel()
		queue[1].Cancel()
	})
}

// A wait that led to the lock may have entries on nodes that granted the key to somebody else.
func TestReleaseAfterLeavesTheQueue(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		b.Steal(key, 20*time.Second, 3, 4)
		l := b.Acquire(key, ttl)
		w := p.Wait(key, time.Hour)
		time.Sleep(time.Second)
		require.NoError(b, l.Release(ctx))
		got := w.Hold()
		require.Equal(b, []int{0, 1, 2, 3, 4}, b.Has(key))
		require.NoError(b, got.ReleaseAfter(ctx, time.Second))
		b.NoQueues()
	})
}

func TestReleaseAfterWithNodesThatAreDown(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Masters.Master(0).Kill()
		b.Stall(1)
		began := time.Now()
		require.NoError(b, l.ReleaseAfter(ctx, 5*time.Second))
		takenFor(b, began, 5*time.Second)
	})
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Masters.Master(0).Kill()
		b.Stall(1, 2)
		var err error
		took := virtual.Took(func() { err = l.ReleaseAfter(ctx, 5*time.Second) })
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, virtual.NodeTimeout, took)
		assert.Equal(b, redlock.ErrReleased, context.Cause(l.Context()))
	})
}

// A node that could not be reached lets the key expire when the others do, not that much later.
func TestReleaseAfterReachesALateNodeWithWhatIsLeft(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		l := b.Hold(p, time.Minute)
		p.Paths[0].Refuse(true)
		p.Paths[0].Break()
		require.NoError(b, l.ReleaseAfter(ctx, 30*time.Second))
		time.Sleep(10 * time.Second)
		p.Paths[0].Refuse(false)
		time.Sleep(5 * time.Second)
		assert.InDelta(b, 15.3, b.Redis(0).TTL(key).Seconds(), 0.1, "30 s and the drift margin, less 15 s")
		assert.InDelta(b, 15.3, b.Redis(1).TTL(key).Seconds(), 0.1)
	})
}

// Without a majority the key must not keep others from it on the rest.
func TestReleaseAfterOfALockWithoutItsMajority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, ttl, 0, 1, 2)
		err := l.ReleaseAfter(ctx, time.Hour)
		assert.ErrorIs(b, err, redlock.ErrNotHeld)
		b.Settle()
		assert.Equal(b, []int{0, 1, 2}, b.Has(key), "those of somebody else")
	})
}

// After a loss another client may have the key, so nothing is left taken.
func TestReleaseAfterOfALostLock(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		time.Sleep(ttl - time.Millisecond) // the keys live a little longer than the validity
		err := l.ReleaseAfter(ctx, time.Minute)
		assert.ErrorIs(b, err, redlock.ErrExpired)
		b.Settle()
		assert.Empty(b, b.Has(key))
	})
}

func TestReleaseAfterZeroIsRelease(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second, math.MinInt64} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			require.NoError(b, b.Acquire(key, ttl).ReleaseAfter(ctx, d))
			b.Settle()
			assert.Empty(b, b.Has(key))
		})
	}
}

func TestReleaseAfterRefusesWhatAMasterCouldForget(t *testing.T) {
	for _, tc := range []struct {
		cfg  redlock.Config
		d    time.Duration
		want string
	}{
		{redlock.Config{RestartGuard: time.Minute}, time.Minute + 1, "release after 1m0.000000001s is above Config.RestartGuard, 1m0s"},
		{redlock.Config{Fencing: true, FenceRetention: time.Hour}, time.Hour, "release after 1h0m0s and the ttl 10s are above Config.FenceRetention, 1h0m0s"},
		{redlock.Config{Fencing: true}, math.MaxInt64, "are above Config.FenceRetention"},
	} {
		virtual.Run(t, 3, tc.cfg, func(b *virtual.Bed) {
			time.Sleep(2 * time.Minute) // the guard has seen the servers for long enough
			l := b.Acquire(key, ttl)
			require.ErrorContains(b, l.ReleaseAfter(ctx, tc.d), tc.want)
			assert.True(b, l.Valid(), "nothing was done")
			require.NoError(b, l.ReleaseAfter(ctx, time.Minute))
		})
	}
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		require.NoError(b, b.Acquire(key, ttl).ReleaseAfter(ctx, math.MaxInt64), "292 years")
		b.Settle()
		time.Sleep(time.Second)
		assert.Equal(b, []int{0}, b.Has(key))
	})
}

// A token stays above those before it, as the fence outlives the key.
func TestReleaseAfterKeepsTheFence(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{Fencing: true, FenceRetention: time.Minute}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		require.NoError(b, l.ReleaseAfter(ctx, 45*time.Second))
		behind := b.NewRedlock(redlock.Config{Fencing: true, FenceRetention: time.Minute, Clock: clock.Skewed(clock.System(), 1, -5*time.Second)})
		time.Sleep(46 * time.Second)
		assert.Greater(b, b.Take(behind).FencingToken(), l.FencingToken())
	})
}
