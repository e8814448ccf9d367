package cronlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorumlock/redlock/integration/cronlock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Two hosts have the same schedule. The second one, whose clock is a little behind, finds the key
// taken although the job is long done.
func Example() {
	masters, err := redlocktest.New(3) // in production, the URLs of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	logger := cron.VerbosePrintfLogger(log.New(os.Stdout, "", 0))

	for _, host := range []string{"one", "two"} {
		locks, err := redlock.Open(masters.URLs(), redlock.Config{})
		if err != nil {
			log.Fatal(err)
		}
		defer locks.Close()
		once, err := cronlock.Wrapper(locks, "nightly-report", cronlock.Config{AtLeast: time.Minute, Logger: logger})
		if err != nil {
			log.Fatal(err)
		}
		c := cron.New()
		id, err := c.AddJob("0 3 * * *", cron.NewChain(once).Then(cronlock.Func(func(ctx context.Context) {
			fmt.Println("a report by", host)
		})))
		if err != nil {
			log.Fatal(err)
		}
		c.Entry(id).WrappedJob.Run() // it is three o'clock
	}
	// Output:
	// a report by one
	// skip, key=nightly-report
}
