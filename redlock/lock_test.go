package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestLockContextCarriesValuesButNoDeadline(t *testing.T) {
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
func TestLockContextEndsAtUntilWhateverTheNetworkDoes(t *testing.T) {
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
			b.Resume(0, 1, 2, 3, 4)
		})
	}
}

// Case 17: one Lock used by many goroutines (redsync's Mutex is mutable).
func TestLockIsSafeForConcurrentUse(t *testing.T) {
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

// A client whose clock runs 0.9 % fast or slow keeps the promise of Until: the keys are still there
// when its lock ends.
func TestAcquireWithClocksSkewedWithinTheDrift(t *testing.T) {
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

func TestAcquireOfManyKeysIsIndependent(t *testing.T) {
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

// slow is a logger to a slow disk.
type slow struct{ slog.Handler }

func (slow) Handle(context.Context, slog.Record) error {
	time.Sleep(300 * time.Millisecond)
	return nil
}

func TestLockContextEndsInTimeDespiteASlowLogger(t *testing.T) {
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

func TestKeepAliveLogsALossWithoutAValue(t *testing.T) {
	var log bytes.Buffer // read after Close, which waits for unwritten lines
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

// lateClock is the clock of a process that is seldom scheduled: it shows the right time, and its
// timers fire a minute late.
type lateClock struct{ clock.Clock }

func (c lateClock) NewTimer(d time.Duration) clock.Timer {
	return lateTimer{c.Clock.NewTimer(d + time.Minute)}
}

func (c lateClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return lateTimer{c.Clock.AfterFunc(d+time.Minute, f)}
}

type lateTimer struct{ clock.Timer }

func (t lateTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d + time.Minute) }

var late = redlock.Config{Clock: lateClock{clock.System()}}

func TestValidIsNeverLate(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		time.Sleep(time.Until(l.Until()) - 1)
		assert.True(t, l.Valid())
		time.Sleep(time.Nanosecond)
		require.NoError(t, l.Context().Err(), "the timer has not fired")
		assert.False(t, l.Valid())
		assert.Equal(t, redlock.ErrExpired, context.Cause(l.Context()), "the lock has ended with it")
		assert.ErrorIs(t, l.Extend(ctx, time.Second), redlock.ErrExpired)
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrExpired)
		assert.False(t, l.Valid())
	})
}

func TestValidFollowsExtendAndRelease(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		require.NoError(t, l.Extend(ctx, 3*time.Second))
		time.Sleep(2 * time.Second)
		assert.True(t, l.Valid())
		require.NoError(t, l.Release(ctx))
		assert.False(t, l.Valid())
		assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
	})
}

func TestLockZeroValuesDoNotPanic(t *testing.T) {
	for _, r := range []*redlock.Redlock{nil, {}} {
		_, err := r.TryAcquire(ctx, key, ttl)
		assert.Error(t, err)
		_, err = r.Acquire(ctx, key, ttl)
		assert.Error(t, err)
		assert.Error(t, r.Do(ctx, key, ttl, func(context.Context) error { return nil }))
		assert.Error(t, r.Close())
	}
	assert.NotEmpty(t, (&redlock.QuorumError{}).Error())
	assert.NotEmpty(t, redlock.NodeError{}.Error())
	assert.False(t, errors.Is(&redlock.QuorumError{}, redlock.ErrHeld))
}

func TestLockMayBeLogged(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("got it", "lock", l)
		for _, s := range []string{fmt.Sprint(l), fmt.Sprintf("%v %+v %#v %s", l, l, l, l), log.String()} {
			assert.Contains(t, s, key)
			assert.NotContains(t, s, l.Value())
		}
	})
}
