package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/integration/gocronlock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

const (
	key     = "nightly-report"
	ttl     = 10 * time.Second
	atLeast = time.Minute
)

func newLocks(t *testing.T, masters *redlocktest.Masters) *redlock.Redlock {
	t.Helper()
	locks, err := redlock.New(masters.Clients(), redlock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close()) })
	return locks
}

func newLocker(t *testing.T, masters *redlocktest.Masters, atLeast time.Duration) *gocronlock.Locker {
	t.Helper()
	locker, err := gocronlock.NewLocker(newLocks(t, masters), gocronlock.Config{TTL: ttl, AtLeast: atLeast})
	require.NoError(t, err)
	return locker
}

// forget deletes all keys on all masters.
func forget(masters *redlocktest.Masters) {
	for _, m := range masters.All() {
		m.Miniredis().FlushAll()
	}
}

// schedule starts a scheduler with one job, called name, every five minutes from first on.
func schedule(t *testing.T, option gocron.SchedulerOption, first time.Time, name string, task gocron.Task, listeners ...gocron.EventListener) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(option)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Shutdown()) })
	_, err = s.NewJob(gocron.DurationJob(5*time.Minute), task,
		gocron.WithName(name), gocron.WithStartAt(gocron.WithStartDateTime(first)), gocron.WithEventListeners(listeners...))
	require.NoError(t, err)
	s.Start()
	return s
}

// Instances whose clocks differ run a job that takes a millisecond once for each firing, and so do
// those whose clocks agree to the nanosecond.
func TestJobRunsOncePerFiring(t *testing.T) {
	for name, by := range map[string]time.Duration{"in the same instant": 0, "seconds apart": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := redlocktest.StartVirtual(t, 3)
				var ran, skipped atomic.Int32
				first := time.Now().Add(time.Minute)
				for i := range 20 {
					locker := newLocker(t, masters, atLeast)
					schedule(t, gocron.WithDistributedLocker(locker), first.Add(time.Duration(i)*by), key,
						locker.Task(key, func(context.Context) error {
							ran.Add(1)
							time.Sleep(time.Millisecond)
							return nil
						}),
						gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
							skipped.Add(1)
							assert.ErrorIs(t, err, redlock.ErrHeld)
						}))
				}
				time.Sleep(15 * time.Minute)
				assert.EqualValues(t, 3, ran.Load())
				assert.EqualValues(t, 3*19, skipped.Load())
			})
		})
	}
}

// Without AtLeast the lock ends with the job, which may take longer than the ttl.
func TestLockExcludesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		one, two := newLocker(t, masters, 0), newLocker(t, masters, 0)
		lock, err := one.Lock(t.Context(), key)
		require.NoError(t, err)
		time.Sleep(3 * ttl)
		began := time.Now()
		for _, locker := range []*gocronlock.Locker{one, two} {
			_, err = locker.Lock(t.Context(), key)
			assert.ErrorIs(t, err, redlock.ErrHeld)
		}
		assert.Zero(t, time.Since(began), "it does not wait")
		_, err = two.Lock(t.Context(), "another")
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, lock.Unlock(ctx), "gocron may have cancelled the job")
		_, err = two.Lock(t.Context(), key)
		require.NoError(t, err)
		assert.ErrorIs(t, lock.Unlock(t.Context()), redlock.ErrReleased)
	})
}

// The key stays taken for AtLeast from the acquisition, and not longer if the job takes longer.
func TestAtLeastCountsFromTheAcquisition(t *testing.T) {
	for _, takes := range []time.Duration{0, 40 * time.Second, 90 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := redlocktest.StartVirtual(t, 3)
				one, two := newLocker(t, masters, atLeast), newLocker(t, masters, atLeast)
				began := time.Now()
				lock, err := one.Lock(t.Context(), key)
				require.NoError(t, err)
				time.Sleep(takes)
				require.NoError(t, lock.Unlock(t.Context()))
				if left := atLeast - time.Since(began); left > 0 {
					time.Sleep(left - time.Second)
					_, err = two.Lock(t.Context(), key)
					assert.ErrorIs(t, err, redlock.ErrHeld)
					time.Sleep(time.Second + clock.DefaultDrift.For(left) - left + time.Millisecond)
				}
				_, err = two.Lock(t.Context(), key)
				assert.NoError(t, err)
			})
		})
	}
}

// The context of a task ends with the lock, and its job has failed, whatever it returns.
func TestTaskLearnsOfALoss(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*redlocktest.Masters)
		want error
	}{
		"the masters have forgotten": {forget, redlock.ErrNotHeld},
		"the masters are away":       {func(m *redlocktest.Masters) { m.Kill(0, 1) }, redlock.ErrExpired},
	} {
		for _, d := range []time.Duration{0, atLeast} {
			t.Run(fmt.Sprint(name, ", at least ", d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					masters := redlocktest.StartVirtual(t, 3)
					locker := newLocker(t, masters, d)
					told, failed := make(chan error, 1), make(chan error, 1)
					schedule(t, gocron.WithDistributedLocker(locker), time.Now().Add(time.Second), key,
						locker.Task(key, func(ctx context.Context) error {
							_, carried := redlock.FromContext(ctx, key)
							assert.True(t, carried)
							test.lose(masters)
							<-ctx.Done()
							told <- context.Cause(ctx)
							return nil
						}),
						gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
					assert.ErrorIs(t, <-told, test.want)
					assert.ErrorIs(t, <-failed, test.want)
				})
			})
		}
	}
}

// A task's error is that of its job, and its context ends when the scheduler stops.
func TestTaskEndsWithItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, redlocktest.StartVirtual(t, 3), 0)
		began, failed := make(chan bool), make(chan error, 1)
		stopped := errors.New("stopped")
		s := schedule(t, gocron.WithDistributedLocker(locker), time.Now().Add(time.Second), key,
			locker.Task(key, func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				return fmt.Errorf("%w: %w", stopped, context.Cause(ctx))
			}),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
		<-began
		require.NoError(t, s.StopJobs())
		err := <-failed
		assert.ErrorIs(t, err, stopped)
		assert.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		_, err = locker.Lock(t.Context(), key)
		assert.NoError(t, err)
	})
}

// The first run of a job has lost its lock and goes on, and the second has begun. The end of the
// first does not concern the second.
func TestUnlockAfterALossReleasesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		locker := newLocker(t, masters, 0)
		first, err := locker.Lock(t.Context(), key)
		require.NoError(t, err)
		forget(masters)
		second, err := locker.Lock(t.Context(), key)
		require.NoError(t, err)
		assert.ErrorIs(t, first.Unlock(t.Context()), redlock.ErrNotHeld)

		_, err = newLocker(t, masters, 0).Lock(t.Context(), key)
		assert.ErrorIs(t, err, redlock.ErrHeld)
		ran := make(chan bool, 1)
		other := newLocker(t, redlocktest.StartVirtual(t, 1), 0) // lets gocron run the task
		schedule(t, gocron.WithDistributedLocker(other), time.Now().Add(time.Second), key,
			locker.Task(key, func(context.Context) error { ran <- true; return nil }))
		assert.True(t, <-ran, "the task of the second finds its lock")
		require.NoError(t, second.Unlock(t.Context()))
	})
}

// A task whose job has another name, or no Locker, does not run.
func TestTaskNeedsALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, redlocktest.StartVirtual(t, 3), 0)
		failed := make(chan error, 1)
		schedule(t, gocron.WithDistributedLocker(locker), time.Now().Add(time.Second), key,
			locker.Task("another", func(context.Context) error { t.Error("it ran"); return nil }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
		assert.ErrorContains(t, <-failed, `no lock on "another"`)
	})
}

// Without a quorum the job does not run, and the listener has the reason.
func TestJobIsSkippedWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		masters.Kill(0, 1)
		locker := newLocker(t, masters, 0)
		skipped := make(chan error, 1)
		schedule(t, gocron.WithDistributedLocker(locker), time.Now().Add(time.Second), key,
			locker.Task(key, func(context.Context) error { t.Error("it ran"); return nil }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { skipped <- err }))
		assert.ErrorIs(t, <-skipped, redlock.ErrNoQuorum)
	})
}

func TestMistakesAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		locks := newLocks(t, masters)
		guarded, err := redlock.New(masters.Clients(), redlock.Config{RestartGuard: 30 * time.Second})
		require.NoError(t, err)
		defer guarded.Close()
		for want, args := range map[string]struct {
			locks *redlock.Redlock
			cfg   gocronlock.Config
		}{
			"gocronlock: locks is nil":               {nil, gocronlock.Config{}},
			"gocronlock: redlock: ttl 1ms":           {locks, gocronlock.Config{TTL: time.Millisecond}},
			"gocronlock: redlock: ttl -1s":           {locks, gocronlock.Config{TTL: -time.Second}},
			"gocronlock: Config.AtLeast -1s is":      {locks, gocronlock.Config{AtLeast: -time.Second}},
			"gocronlock: Config.AtLeast as a ttl: r": {guarded, gocronlock.Config{AtLeast: time.Minute}},
		} {
			_, err := gocronlock.NewLocker(args.locks, args.cfg)
			assert.ErrorContains(t, err, want)
		}
		locker := newLocker(t, masters, 0)
		_, err = locker.Lock(t.Context(), "")
		assert.ErrorContains(t, err, "key is empty")
		s, err := gocron.NewScheduler()
		require.NoError(t, err)
		defer s.Shutdown()
		_, err = s.NewJob(gocron.DurationJob(time.Minute), locker.Task(key, nil))
		assert.ErrorIs(t, err, gocron.ErrNewJobTaskNotFunc)
	})
}
