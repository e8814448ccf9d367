// Command redlock-lab shows a quorum at work, and simulates clients and masters under faults. It
// needs no masters, and is not for production.
package main

import (
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/redlock/internal/cli"
)

func main() {
	// go-redis writes failed dials to stderr through a logger that the whole process shares. The
	// demo shows them in its tables instead.
	redis.SetLogger(&logging.VoidLogger{})
	os.Exit(cli.Main(newRoot()))
}
