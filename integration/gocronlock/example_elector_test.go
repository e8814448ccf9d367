package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/redlock/integration/gocronlock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// The leader runs all jobs. On its way out an instance shuts its scheduler down, ends its part in the
// election, and closes its locks.
func ExampleElector() {
	masters, err := redlocktest.New(3) // in production, the URLs of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	locks, err := redlock.Open(masters.URLs(), redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	elector, err := gocronlock.NewElector(locks, "leader:scheduler", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	ctx, resign := context.WithCancel(context.Background())
	resigned := make(chan error)
	go func() { resigned <- elector.Run(ctx) }()

	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	ran := make(chan bool)
	_, err = scheduler.NewJob(
		gocron.DurationJob(10*time.Millisecond), // in production: gocron.CronJob("0 3 * * *", false)
		elector.Task(func(ctx context.Context) error {
			select {
			case ran <- true:
			case <-ctx.Done(): // the term was lost, or the scheduler stops
			}
			return nil
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	fmt.Println("the job has run:", <-ran)

	if err := scheduler.Shutdown(); err != nil {
		log.Fatal(err)
	}
	resign()
	fmt.Println("resigned:", <-resigned)
	// Output:
	// the job has run: true
	// resigned: <nil>
}
