package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/quorumlock/redlock/integration/gocronlock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Two instances have the same job. The second one finds the key taken although the job is long done.
func Example() {
	masters, err := redlocktest.New(3) // in production, the URLs of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()

	for _, instance := range []string{"one", "two"} {
		locks, err := redlock.Open(masters.URLs(), redlock.Config{})
		if err != nil {
			log.Fatal(err)
		}
		defer locks.Close()
		locker, err := gocronlock.NewLocker(locks, gocronlock.Config{AtLeast: time.Minute})
		if err != nil {
			log.Fatal(err)
		}
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			log.Fatal(err)
		}
		done := make(chan struct{})
		_, err = scheduler.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), // in production: gocron.CronJob("0 3 * * *", false)
			locker.Task("nightly-report", func(ctx context.Context) error {
				fmt.Println("a report by", instance)
				return nil
			}),
			gocron.WithName("nightly-report"),
			gocron.WithEventListeners(
				gocron.AfterJobRuns(func(uuid.UUID, string) { close(done) }),
				gocron.AfterLockError(func(uuid.UUID, string, error) {
					fmt.Println("skipped by", instance)
					close(done)
				}),
			),
		)
		if err != nil {
			log.Fatal(err)
		}
		scheduler.Start()
		<-done
		if err := scheduler.Shutdown(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a report by one
	// skipped by two
}
