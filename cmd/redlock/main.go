// Command redlock runs other commands under locks that a majority of Redis masters agrees
// on. It shows such locks, breaks them, and checks the masters.
package main

import (
	"os"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
)

func main() {
	// go-redis writes failed dials to stderr through a logger that the whole process shares.
	// This command words them itself.
	redis.SetLogger(&logging.VoidLogger{})
	code := cli.Main(newRoot())
	if code == cli.ExitSignal+int(syscall.SIGINT) {
		leash.EndOf(syscall.SIGINT)
	}
	os.Exit(code)
}
