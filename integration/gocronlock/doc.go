// Package gocronlock runs a job of gocron on one of the instances that have the same schedule, under
// a lock that a majority of Redis masters has granted.
//
//	locker, err := gocronlock.NewLocker(locks, gocronlock.Config{AtLeast: time.Minute})
//	…
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	…
//	_, err = scheduler.NewJob(
//		gocron.CronJob("0 3 * * *", false),
//		locker.Task("nightly-report", func(ctx context.Context) error {
//			return report(ctx) // ctx ends if the lock is lost
//		}),
//		gocron.WithName("nightly-report"), // also the key of the lock
//	)
//
// gocron skips the job on an instance that finds the lock held, and counts that as a skip. The event
// listener gocron.AfterLockError gets the reason. The lock is renewed while the job runs. gocron
// itself cannot tell a job that its lock is lost; [Locker.Task] does.
//
// gocron locks the name of a job, which is that of its function unless gocron.WithName is given.
// Other users of the same masters should not lock the same names: give the Redlock a KeyPrefix.
//
// # Once per firing
//
// The clocks of instances differ. When the last of them fires, the first may have ended a short job
// already, and released its lock. So set [Config.AtLeast] to more than any two clocks differ: the key
// then stays taken for that long, whatever becomes of the instance after the job. If two firings are
// less than AtLeast and the difference of the clocks apart, the second one may be skipped. Jobs that
// fire every so often count from the start of their instance; gocron.WithStartAt makes their
// instances agree.
//
// If an instance dies while it runs the job, others do not run the job for this firing, unless their
// clocks are behind by more than the ttl.
//
// # A leader for all jobs
//
// With an [Elector] one instance is the leader and runs all jobs, as suits jobs that share the
// memory or the disk of their host.
package gocronlock
