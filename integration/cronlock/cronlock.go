// Package cronlock runs a job of robfig/cron once for each firing of its schedule, on one of the
// instances that have the same schedule, under a lock that a majority of Redis masters has granted.
//
//	once, err := cronlock.Wrapper(locks, "nightly-report", cronlock.Config{AtLeast: time.Minute})
//	…
//	c.AddJob("0 3 * * *", cron.NewChain(once).Then(cronlock.Func(func(ctx context.Context) {
//		report(ctx) // ctx ends if the lock is lost
//	})))
//
// An instance that finds the lock held skips the job, and logs that as cron.SkipIfStillRunning does.
// The lock is renewed while the job runs.
//
// # Once per firing
//
// The clocks of instances differ. When the last of them fires, the first may have ended a short job
// already, and released its lock. So set [Config.AtLeast] to more than any two clocks differ: the key
// then stays taken for that long, whatever becomes of the instance after the job. If two firings are
// less than AtLeast and the difference of the clocks apart, the second one may be skipped.
//
// If an instance dies while it runs the job, others do not run the job for this firing, unless their
// clocks are behind by more than the ttl.
//
// # Keys
//
// cron.WithChain wraps all jobs of a Cron with the same wrappers, so a wrapper of this package there
// would let only one of them run at a time. Wrap each job with a key of its own.
package cronlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
)

// Config configures a wrapper. The zero value lets one instance run the job at a time.
type Config struct {
	// TTL is how long the lock outlives an instance that dies while it runs the job. It need not
	// match the duration of the job. Defaults to 30 s.
	TTL time.Duration

	// AtLeast is how long the key stays taken from the acquisition on, and a little longer
	// (redlock.Config.Drift), if the job ends before. It makes the job run once per firing. With a
	// RestartGuard it may not be above that. With Fencing, AtLeast and TTL together may not be above
	// FenceRetention. Defaults to 0: the lock ends with the job.
	AtLeast time.Duration

	// Logger gets a skipped job as Info, and as Error why the lock was not acquired, was lost, or was
	// not released. Defaults to cron.DefaultLogger, which prints errors alone.
	Logger cron.Logger
}

// Func is a job that gets the context of its lock. The context ends if the lock is lost, and
// redlock.FromContext returns the lock from it, for its fencing token. Put the wrapper of this
// package last in the chain, next to the Func.
type Func func(ctx context.Context)

// Run runs the job without a lock. cron calls it if the job has no wrapper of this package.
func (f Func) Run() { f(context.Background()) }

// RunContext runs the job under a lock.
func (f Func) RunContext(ctx context.Context) { f(ctx) }

// Wrapper returns a wrapper for one job. Instances whose wrappers have the same key exclude each
// other. A job that has a method RunContext(context.Context), such as a Func, gets the lock's
// context. Any other job does not hear of a loss, and runs on.
func Wrapper(locks *redlock.Redlock, key string, cfg Config) (cron.JobWrapper, error) {
	if cfg.TTL == 0 {
		cfg.TTL = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = cron.DefaultLogger
	}
	if err := trylock.Check(locks, key, cfg.TTL); err != nil {
		return nil, fmt.Errorf("cronlock: %w", err)
	}
	if cfg.AtLeast < 0 {
		return nil, fmt.Errorf("cronlock: Config.AtLeast %v is negative", cfg.AtLeast)
	}
	if err := trylock.Check(locks, key, max(cfg.TTL, cfg.AtLeast)); err != nil {
		return nil, fmt.Errorf("cronlock: Config.AtLeast as a ttl: %w", err)
	}
	w := wrapper{locks, key, cfg}
	return func(job cron.Job) cron.Job { return cron.FuncJob(func() { w.run(job) }) }, nil
}

type wrapper struct {
	locks *redlock.Redlock
	key   string
	cfg   Config
}

func (w wrapper) run(job cron.Job) {
	lock, err := trylock.Acquire(context.Background(), w.locks, w.key, w.cfg.TTL)
	if errors.Is(err, redlock.ErrHeld) {
		w.cfg.Logger.Info("skip", "key", w.key)
		return
	} else if err != nil {
		w.cfg.Logger.Error(err, "skip", "key", w.key)
		return
	}
	began := time.Now()
	lock.KeepAlive()
	defer func() { // after a panic too
		if err := w.release(lock, w.cfg.AtLeast-time.Since(began)); err != nil {
			w.cfg.Logger.Error(err, "release", "key", w.key)
		}
	}()
	if withContext, ok := job.(interface{ RunContext(context.Context) }); ok {
		withContext.RunContext(lock.Context())
	} else {
		job.Run()
	}
}

// release ends the lock, and leaves the key taken for what is left of AtLeast.
func (w wrapper) release(lock *redlock.Lock, left time.Duration) error {
	err := lock.ReleaseAfter(context.Background(), left)
	if err != nil {
		_ = lock.Release(context.Background()) // if left itself was the mistake
	}
	return err
}
