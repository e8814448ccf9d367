package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func until(start time.Time, ttl time.Duration) time.Time {
	return start.Add(ttl - clock.DefaultDrift.Of(ttl))
}

func TestExtendLengthensFromBeforeItWasSent(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		time.Sleep(3 * time.Second)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		start := time.Now()
		require.NoError(t, l.Extend(ctx, time.Minute))
		assert.Equal(t, until(start, time.Minute), l.Until())
		time.Sleep(20 * time.Millisecond)
		for _, m := range b.Masters.All() {
			assert.Equal(t, time.Minute-30*time.Millisecond, m.Miniredis().TTL(key))
		}
	})
}

func TestExtendNeverShortens(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Minute)
		was := l.Until()
		require.NoError(t, l.Extend(ctx, time.Second))
		b.Settle()
		assert.Equal(t, was, l.Until())
		for _, m := range b.Masters.All() {
			assert.Equal(t, time.Minute, m.Miniredis().TTL(key))
		}
	})
}

func TestExtendThatFindsNoQuorumChangesNothing(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		was := l.Until()
		b.Masters.Kill(0, 1, 2)
		err := l.Extend(ctx, time.Minute)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		// Case 18: redsync says "already taken" when Unlock or Extend fails.
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.NotContains(t, fmt.Sprint(err), "held by another")
		assert.Equal(t, was, l.Until())
		assert.NoError(t, l.Context().Err(), "still valid")
		require.NoError(t, b.Masters.Restart(0, 1, 2))
	})
}

func TestExtendOfALostLockEndsIt(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, time.Hour, 0, 1, 2)
		err := l.Extend(ctx, ttl)
		require.ErrorIs(t, err, redlock.ErrNotHeld)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.Equal(t, redlock.ErrNotHeld, context.Cause(l.Context()))
		b.Settle()
		for _, i := range []int{0, 1, 2} {
			v, _ := b.Masters.Master(i).Miniredis().Get(key)
			assert.Equal(t, "somebody else", v)
		}
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld, "it never comes back")
		err = l.Release(ctx)
		assert.ErrorIs(t, err, redlock.ErrNotHeld)
		b.Settle()
		assert.Equal(t, []int{0, 1, 2}, b.Has(key), "what was left of ours went")
	})
}

// Case 10: RedLock.net, aioredlock and redlock-rb put a lost key back when they
// renew; redsync's SetNXOnExtend revives an expired lock.
func TestExtendNeverCreatesAKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		for _, m := range b.Masters.All() {
			m.Miniredis().Del(key)
		}
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		b.Settle()
		assert.Empty(t, b.Has(key))

		l = b.Acquire(key, ttl)
		b.Settle()
		b.Commands(0)
		time.Sleep(ttl)
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrExpired)
		b.Settle()
		assert.Empty(t, b.Has(key))
		assert.Empty(t, b.Commands(0), "nobody was asked")
	})
}

func TestAnExtensionThatArrivesTooLateDoesNotCount(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{NodeTimeout: time.Minute}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		done := l.Context().Done()
		b.Settle()
		time.Sleep(ttl - time.Second)
		b.Delay(0, 900*time.Millisecond)
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrExpired)
		<-done
		assert.Equal(t, redlock.ErrExpired, context.Cause(l.Context()))
	})
}

// Case 14: a lock on 3 of 5; one restarts empty; somebody else gets 3.
func TestASlimMajorityThatIsLostIsNoticed(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(3, 4)
		slim := b.Acquire(key, ttl)
		b.Settle()
		require.NoError(t, b.Masters.Restart(3, 4))
		require.NoError(t, b.Masters.Master(2).RestartEmpty())
		time.Sleep(2 * time.Second)
		b.Steal(key, time.Hour, 2, 3, 4)
		b.Warm() // the connections that broke are replaced
		assert.ErrorIs(t, slim.Extend(ctx, ttl), redlock.ErrNotHeld)
	})
}

func TestASlimLockGrowsBack(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(3, 4)
		l := b.Acquire(key, time.Hour)
		b.Settle()
		assert.Equal(t, []int{0, 1, 2}, b.Has(key))
		require.NoError(t, b.Masters.Restart(3, 4))
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Extend(ctx, time.Hour))
		b.Settle()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key))
		v, _ := b.Masters.Master(4).Miniredis().Get(key)
		assert.Equal(t, l.Value(), v)
		// It now survives the loss of any two.
		b.Masters.Kill(0, 1)
		require.NoError(t, l.Extend(ctx, time.Hour))
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Equal(t, []int{0, 1}, b.Has(key), "the dead have kept theirs")
		require.NoError(t, b.Masters.Restart(0, 1))
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key), "and are asked again when they are back")
	})
}

func TestTopUpTakesNothingFromAnybody(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, time.Hour, 4)
		l := b.Acquire(key, ttl)
		require.NoError(t, l.Extend(ctx, ttl))
		b.Settle()
		v, _ := b.Masters.Master(4).Miniredis().Get(key)
		assert.Equal(t, "somebody else", v)
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Equal(t, []int{4}, b.Has(key))
	})
}

func TestALockWithoutAMajorityIsNotToppedUp(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, time.Hour)
		b.Settle()
		b.Masters.Master(4).Miniredis().Del(key)
		b.Stall(0, 1, 2)
		require.ErrorIs(t, l.Extend(ctx, time.Hour), redlock.ErrNoQuorum)
		time.Sleep(3 * time.Second) // until those are given up
		b.Settle()
		assert.NotContains(t, b.Has(key), 4)
		for i := range 3 {
			b.Masters.Master(i).Resume()
		}
	})
}

func TestReleaseDeletesOnlyOurKey(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, ttl, 0, 1)
		require.NoError(t, l.Release(ctx), "a majority had it until now")
		b.Settle()
		assert.Equal(t, []int{0, 1}, b.Has(key))
		assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
		err := l.Release(ctx)
		assert.ErrorIs(t, err, redlock.ErrReleased)
		for i := range 5 {
			b.Commands(i)
		}
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrReleased)
		b.Settle()
		assert.Empty(t, b.Commands(0), "nobody was asked")
	})
}

// Case 3: the script cache is lost between acquire and release.
func TestReleaseSurvivesALostScriptCache(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		for _, m := range b.Masters.All() {
			require.NoError(t, m.FlushScripts())
			m.ResetCommands()
		}
		require.NoError(t, l.Extend(ctx, ttl))
		b.Settle()
		assert.Equal(t, []string{"EVALSHA", "EVAL"}, b.Commands(0))
		for _, m := range b.Masters.All() {
			require.NoError(t, m.FlushScripts())
		}
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// Case 12: node-redlock retries the release of an expired lock for seconds.
func TestReleaseOfAnExpiredLockReturnsAtOnce(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		time.Sleep(ttl)
		b.Settle()
		for i := range 5 {
			b.Commands(i)
		}
		var err error
		assert.Zero(t, virtual.Took(func() { err = l.Release(ctx) }))
		require.ErrorIs(t, err, redlock.ErrNotHeld)
		assert.ErrorIs(t, err, redlock.ErrExpired, "and by our own clock it was over")
		time.Sleep(time.Minute)
		for i := range 5 {
			assert.LessOrEqual(t, len(b.Commands(i)), 1, "nothing is retried")
		}

		// The keys outlive the validity by the drift: the release finds them,
		// and does not hide that they no longer counted.
		l = b.Acquire(key, ttl)
		b.Settle()
		time.Sleep(time.Until(l.Until()))
		err = l.Release(ctx)
		assert.ErrorIs(t, err, redlock.ErrExpired)
		assert.NotErrorIs(t, err, redlock.ErrNotHeld)
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestReleaseRunsOnACancelledContext(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		c, cancel := context.WithCancel(ctx)
		l, err := b.Redlock.TryAcquire(c, key, ttl)
		require.NoError(t, err)
		b.Settle()
		cancel()
		assert.NoError(t, l.Context().Err(), "the lock does not end with the context that acquired it")
		require.NoError(t, l.Release(c))
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestTheContextCarriesValuesButNoDeadline(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		type name struct{}
		c, cancel := context.WithTimeout(context.WithValue(ctx, name{}, "v"), time.Second)
		defer cancel()
		l, err := b.Redlock.TryAcquire(c, key, ttl)
		require.NoError(t, err)
		assert.Equal(t, "v", l.Context().Value(name{}))
		_, has := l.Context().Deadline()
		assert.False(t, has)
		time.Sleep(2 * time.Second)
		assert.NoError(t, l.Context().Err())
	})
}

// Case 13: two rueidislock holders overlapped for 2.5 s after a partition.
func TestALossIsSignalledAtUntilWhateverTheNetworkDoes(t *testing.T) {
	for _, keepAlive := range []bool{false, true} {
		virtual.Run(t, 5, redlock.Config{NodeTimeout: time.Hour}, func(b *virtual.Bed) {
			l := b.Acquire(key, ttl)
			if keepAlive {
				l.KeepAlive()
			}
			b.Settle()
			b.Stall(0, 1, 2, 3, 4)
			at := l.Until()
			<-l.Context().Done()
			assert.Equal(t, at, time.Now())
			assert.Equal(t, redlock.ErrExpired, context.Cause(l.Context()))
			for i := range 5 {
				b.Masters.Master(i).Resume()
			}
		})
	}
}

func TestKeepAliveRenewsAtAThirdOfTheTtl(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		l.KeepAlive() // again: nothing
		b.Settle()
		for i := range 5 {
			b.Asked(i)
		}
		start := time.Now()
		for n := 1; n <= 20; n++ {
			time.Sleep(time.Until(start.Add(time.Duration(n)*3*time.Second - time.Millisecond)))
			b.Settle()
			assert.Empty(t, b.Asked(0), "too early")
			time.Sleep(2 * time.Millisecond)
			b.Settle()
			assert.Equal(t, []string{"EVALSHA"}, b.Asked(0))
			assert.Equal(t, until(start.Add(time.Duration(n)*3*time.Second), 9*time.Second), l.Until())
		}
		// It goes on with the ttl last asked for.
		require.NoError(t, l.Extend(ctx, time.Minute))
		time.Sleep(time.Hour)
		assert.NoError(t, l.Context().Err())
		assert.Greater(t, time.Until(l.Until()), 39*time.Second)
		require.NoError(t, l.Release(ctx))
	})
}

func TestARenewalThatFindsNoQuorumIsTriedAgain(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		b.Settle()
		b.Stall(0, 1, 2)
		time.Sleep(8 * time.Second)
		require.NoError(t, l.Context().Err())
		for i := range 3 {
			b.Masters.Master(i).Resume()
		}
		time.Sleep(time.Minute)
		assert.NoError(t, l.Context().Err(), "it came through before Until")
		require.NoError(t, l.Release(ctx))
	})
}

func TestRenewalFindsTheLossAndSaysSo(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		b.Settle()
		b.Steal(key, time.Hour, 0, 2, 4)
		start := time.Now()
		<-l.Context().Done()
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.Equal(t, redlock.ErrNotHeld, context.Cause(l.Context()))
	})
}

// Case 11: orphans of RedLock.net were renewed for days after their release.
func TestNothingRenewsAfterRelease(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for range 50 {
			l := b.Acquire(key, 30*time.Millisecond)
			l.KeepAlive()
			// Somewhere around the moment at which a renewal is under way.
			time.Sleep(10 * time.Millisecond)
			if err := l.Release(ctx); err != nil {
				require.NoError(t, err)
			}
			b.Settle()
			for i := range 5 {
				sent := b.Asked(i)
				n := len(sent)
				require.NotEmpty(t, sent)
				assert.Equal(t, "EVALSHA", sent[n-1])
			}
			assert.Empty(t, b.Has(key))
			time.Sleep(time.Second)
			for i := range 5 {
				assert.Empty(t, b.Asked(i))
			}
		}
	})
}

// Case 17: one Lock used by many goroutines (redsync's Mutex is mutable).
func TestALockIsSafeForConcurrentUse(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		l.KeepAlive()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var released []error
		for i := range 64 {
			wg.Go(func() {
				switch i % 4 {
				case 0:
					_ = l.Extend(ctx, time.Second)
				case 1:
					_ = l.Until()
					_ = context.Cause(l.Context())
				case 2:
					l.KeepAlive()
				case 3:
					time.Sleep(10 * time.Millisecond)
					err := l.Release(ctx)
					mu.Lock()
					released = append(released, err)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		won := 0
		for _, err := range released {
			if err == nil {
				won++
			} else {
				assert.ErrorIs(t, err, redlock.ErrReleased)
			}
		}
		assert.Equal(t, 1, won, "one release is the release")
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// A client whose clock runs 0.9 % fast or slow keeps what Until promises: the
// keys are still there when its lock ends.
func TestSkewedClocksWithinTheDrift(t *testing.T) {
	for _, rate := range []float64{0.991, 1, 1.009} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			c := clock.Skewed(clock.System(), rate, -time.Hour)
			r := b.NewRedlock(redlock.Config{Clock: c})
			l, err := r.TryAcquire(ctx, key, ttl)
			require.NoError(t, err)
			b.Settle()
			<-l.Context().Done()
			assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key), "rate %v", rate)
			assert.False(t, c.Now().Before(l.Until()))
		})
	}
}

func TestLocksOfManyKeysAreIndependent(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		var locks []*redlock.Lock
		for _, k := range []string{"a", "b", "{a}b", "ключ", "with space\r\n", string(make([]byte, 3))} {
			locks = append(locks, b.Acquire(k, ttl))
			_, err := b.Redlock.TryAcquire(ctx, k, ttl)
			assert.ErrorIs(t, err, redlock.ErrHeld)
		}
		slices.Reverse(locks)
		for _, l := range locks {
			require.NoError(t, l.Release(ctx))
		}
	})
}

// A minority extended to an hour, a majority to a second: the release must go on
// asking for as long as the longest key may live.
func TestReleaseAsksForAsLongAsAKeyMayLive(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Stall(0, 1, 2)
		require.ErrorIs(t, l.Extend(ctx, time.Hour), redlock.ErrNoQuorum)
		for i := range 3 {
			b.Masters.Master(i).Resume()
		}
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Extend(ctx, time.Second))
		b.Settle()
		b.Stall(4)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Minute)
		b.Masters.Master(4).Resume()
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key))
	})
}

// A wish for an hour that found no quorum does not stretch the renewals of a
// lock that is valid for a second.
func TestAFailedLongExtensionDoesNotDelayRenewals(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 900*time.Millisecond)
		l.KeepAlive()
		b.Delay(20*time.Millisecond, 20*time.Millisecond)
		time.Sleep(310 * time.Millisecond) // a renewal is under way
		c, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Extend(c, time.Hour), context.DeadlineExceeded)
		time.Sleep(10 * time.Minute)
		assert.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(ctx))
	})
}

// A node that is loading, or has just become a replica, answers at once, and
// differently a moment later: the release is owed to it.
func TestAPassingErrorDoesNotLeaveTheKey(t *testing.T) {
	for _, passing := range []string{"LOADING Redis is loading", "READONLY You can't write", "BUSY Redis is busy", "MISCONF no", "CLUSTERDOWN no", "TRYAGAIN no", "MASTERDOWN no", "NOREPLICAS no", "OOM no"} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			l := b.Acquire(key, time.Hour)
			b.Settle()
			b.Masters.Master(2).Miniredis().SetError(passing)
			require.NoError(t, l.Release(ctx))
			b.Settle()
			b.Masters.Master(2).Miniredis().SetError("")
			time.Sleep(3 * time.Second)
			assert.Empty(t, b.Has(key), passing)
		})
	}
}

// slow is a log file on a slow disk.
type slow struct{ slog.Handler }

func (slow) Handle(context.Context, slog.Record) error {
	time.Sleep(300 * time.Millisecond)
	return nil
}

func TestASlowLoggerDelaysNoLoss(t *testing.T) {
	logger := slog.New(slow{slog.NewTextHandler(io.Discard, nil)})
	virtual.Run(t, 3, redlock.Config{Logger: logger}, func(b *virtual.Bed) {
		var locks []*redlock.Lock
		for i := range 10 {
			locks = append(locks, b.Acquire(string(rune('a'+i)), ttl))
		}
		b.Settle()
		ended := make(chan time.Duration, len(locks))
		for _, l := range locks {
			go func() {
				<-l.Context().Done()
				ended <- time.Since(l.Until())
			}()
		}
		for range locks {
			assert.Zero(t, <-ended)
		}
	})
}

func TestTheLogTellsOfALossAndOfNoValue(t *testing.T) {
	var log bytes.Buffer // read after Close, which waits for what is unwritten
	logger := slog.New(slog.NewTextHandler(&log, nil))
	var value string
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{Logger: logger})
		require.NoError(t, err)
		l, err := r.TryAcquire(ctx, key, time.Second)
		require.NoError(t, err)
		value = l.Value()
		l.KeepAlive()
		b.Settle()
		b.Masters.Kill(0, 1, 2)
		<-l.Context().Done()
		require.NoError(t, r.Close())
	})
	assert.Contains(t, log.String(), "lock lost")
	assert.Contains(t, log.String(), "renewal failed")
	assert.Contains(t, log.String(), "validity has ended")
	assert.NotContains(t, log.String(), value)
}
