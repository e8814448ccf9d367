//go:build linux

package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

var (
	stormFor     = flag.Duration("chaos.for", 10*time.Second, "how long the storm lasts")
	stormSeed    = flag.Uint64("chaos.seed", 0, "decides which faults are drawn (0: any)")
	stormClients = flag.Int("chaos.clients", 4, "client processes")
	stormMasters = flag.Int("chaos.masters", 5, "redis-server processes")
)

// clientEnv makes the test binary run as a client.
const clientEnv = "CHAOS_TEST_CLIENT"

func TestMain(m *testing.M) {
	redis.SetLogger(&logging.VoidLogger{}) // go-redis's own logger writes to stderr
	if config := os.Getenv(clientEnv); config != "" {
		if err := runClient(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
