package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/integration/cronlock"
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

// newJob returns a job in a wrapper that has clients of its own.
func newJob(t *testing.T, masters *redlocktest.Masters, cfg cronlock.Config, job cron.Job) cron.Job {
	t.Helper()
	cfg.TTL = ttl
	once, err := cronlock.Wrapper(newLocks(t, masters), key, cfg)
	require.NoError(t, err)
	return cron.NewChain(once).Then(job)
}

// logbook is a cron.Logger.
type logbook struct {
	mu    sync.Mutex
	lines []string
	errs  []error
}

func (l *logbook) Info(message string, pairs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprint(append([]any{message + " "}, pairs...)...))
}

func (l *logbook) Error(err error, message string, pairs ...any) {
	l.Info(message, pairs...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *logbook) logged() (lines []string, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines, l.errs
}

// forget deletes all keys on all masters.
func forget(masters *redlocktest.Masters) {
	for _, m := range masters.All() {
		m.Miniredis().FlushAll()
	}
}

// late is a schedule that fires every five minutes by a clock that is behind.
type late struct{ by time.Duration }

func (l late) Next(t time.Time) time.Time {
	return t.Add(-l.by).Truncate(5 * time.Minute).Add(5*time.Minute + l.by)
}

// Instances whose clocks differ run a job that takes a millisecond once for each firing, and so do
// those whose clocks agree to the nanosecond.
func TestJobRunsOncePerFiring(t *testing.T) {
	for name, by := range map[string]time.Duration{"in the same instant": 0, "seconds apart": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := redlocktest.StartVirtual(t, 3)
				time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(6 * time.Minute)))
				var mu sync.Mutex
				var ran []time.Time
				logger := &logbook{}
				for i := range 20 {
					c := cron.New(cron.WithLogger(cron.DiscardLogger))
					c.Schedule(late{time.Duration(i) * by}, newJob(t, masters, cronlock.Config{AtLeast: atLeast, Logger: logger}, cron.FuncJob(func() {
						mu.Lock()
						defer mu.Unlock()
						ran = append(ran, time.Now())
						time.Sleep(time.Millisecond)
					})))
					c.Start()
					defer func() { <-c.Stop().Done() }()
				}
				time.Sleep(15*time.Minute - time.Second)
				mu.Lock()
				defer mu.Unlock()
				assert.Len(t, ran, 3)
				lines, errs := logger.logged()
				assert.Empty(t, errs)
				assert.Len(t, lines, 3*19)
			})
		})
	}
}

// Each of three instances gets another one of three masters. After this one of them runs the job.
func TestJobRunsOnceAfterSplitVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		var ran atomic.Int32
		var jobs []cron.Job
		var slow []*redlocktest.Path
		for i := range 3 {
			var clients []redis.UniversalClient
			for j, m := range masters.All() {
				path := m.Path()
				clients = append(clients, path.Client())
				if i != j {
					slow = append(slow, path)
				}
			}
			locks, err := redlock.New(clients, redlock.Config{})
			require.NoError(t, err)
			defer locks.Close()
			warm, err := locks.TryAcquire(t.Context(), "warm", ttl)
			require.NoError(t, err)
			require.NoError(t, warm.Release(t.Context()))
			once, err := cronlock.Wrapper(locks, key, cronlock.Config{AtLeast: atLeast, Logger: &logbook{}})
			require.NoError(t, err)
			jobs = append(jobs, once(cron.FuncJob(func() { ran.Add(1) })))
		}
		for _, path := range slow {
			path.Hold(true, false)
		}
		var wg sync.WaitGroup
		for _, job := range jobs {
			wg.Go(job.Run)
		}
		synctest.Wait()
		for i, m := range masters.All() {
			assert.True(t, m.Miniredis().Exists(key), i)
		}
		for _, path := range slow {
			path.Heal()
		}
		wg.Wait()
		assert.EqualValues(t, 1, ran.Load())
	})
}

// Without AtLeast the lock ends with the job, which may take longer than the ttl.
func TestLockEndsWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		logger := &logbook{}
		ran := 0
		other := newJob(t, masters, cronlock.Config{Logger: logger}, cron.FuncJob(func() { ran++ }))
		newJob(t, masters, cronlock.Config{Logger: logger}, cron.FuncJob(func() {
			time.Sleep(3 * ttl)
			skips := time.Now()
			other.Run()
			assert.Zero(t, time.Since(skips), "it does not wait")
		})).Run()
		assert.Zero(t, ran)
		assert.Equal(t, []string{"skip key" + key}, logger.lines)
		other.Run()
		assert.Equal(t, 1, ran)
		assert.Empty(t, logger.errs)
	})
}

// The key stays taken for AtLeast from the acquisition, and not longer if the job takes longer.
func TestAtLeastCountsFromTheAcquisition(t *testing.T) {
	for _, takes := range []time.Duration{0, 40 * time.Second, 90 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := redlocktest.StartVirtual(t, 3)
				cfg := cronlock.Config{AtLeast: atLeast, Logger: &logbook{}}
				ran := 0
				other := newJob(t, masters, cfg, cron.FuncJob(func() { ran++ }))
				began := time.Now()
				newJob(t, masters, cfg, cron.FuncJob(func() { time.Sleep(takes) })).Run()
				if left := atLeast - time.Since(began); left > 0 {
					time.Sleep(left - time.Second)
					other.Run()
					assert.Zero(t, ran)
					time.Sleep(time.Second + clock.DefaultDrift.For(left) - left + time.Millisecond)
				}
				other.Run()
				assert.Equal(t, 1, ran)
			})
		})
	}
}

// The context of a Func ends with the lock, and the log has the reason.
func TestFuncLearnsOfALoss(t *testing.T) {
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
					logger := &logbook{}
					var told error
					newJob(t, masters, cronlock.Config{AtLeast: d, Logger: logger}, cronlock.Func(func(ctx context.Context) {
						_, carried := redlock.FromContext(ctx, key)
						assert.True(t, carried)
						test.lose(masters)
						<-ctx.Done()
						told = context.Cause(ctx)
					})).Run()
					assert.ErrorIs(t, told, test.want)
					require.Len(t, logger.errs, 1)
					assert.ErrorIs(t, logger.errs[0], test.want)
				})
			})
		}
	}
}

// Without a quorum the job does not run, and the log has the reason.
func TestJobIsSkippedWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		masters.Kill(0, 1)
		logger := &logbook{}
		newJob(t, masters, cronlock.Config{Logger: logger}, cron.FuncJob(func() { t.Error("it ran") })).Run()
		assert.Equal(t, []string{"skip key" + key}, logger.lines)
		require.Len(t, logger.errs, 1)
		assert.ErrorIs(t, logger.errs[0], redlock.ErrNoQuorum)
	})
}

// A job that panics releases the lock, and the panic goes on to a wrapper outside.
func TestPanicReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		logger := &logbook{}
		job := newJob(t, masters, cronlock.Config{Logger: logger}, cron.FuncJob(func() { panic(errors.New("a bug")) }))
		cron.Recover(logger)(job).Run()
		require.Len(t, logger.errs, 1)
		assert.EqualError(t, logger.errs[0], "a bug")
		ran := false
		newJob(t, masters, cronlock.Config{}, cron.FuncJob(func() { ran = true })).Run()
		assert.True(t, ran)
	})
}

// A Func without a wrapper runs too.
func TestFuncWithoutWrapper(t *testing.T) {
	cronlock.Func(func(ctx context.Context) { assert.NoError(t, ctx.Err()) }).Run()
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
			key   string
			cfg   cronlock.Config
		}{
			"locks is nil": {nil, key, cronlock.Config{}},
			"key is empty": {locks, "", cronlock.Config{}},
			"ttl 1ms":      {locks, key, cronlock.Config{TTL: time.Millisecond}},
			"ttl -1s":      {locks, key, cronlock.Config{TTL: -time.Second}},
			"Config.AtLeast as a ttl: redlock: ttl 1m0s is above Config.RestartGuard": {guarded, key, cronlock.Config{AtLeast: time.Minute}},
			"Config.AtLeast -1s is": {locks, key, cronlock.Config{AtLeast: -time.Second}},
		} {
			_, err := cronlock.Wrapper(args.locks, args.key, args.cfg)
			assert.ErrorContains(t, err, want)
		}
	})
}
