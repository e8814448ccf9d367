// Command redlock runs other commands under locks that a majority of Redis masters agrees
// on, and shows such locks at work.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/redlock/internal/leash"
)

func main() {
	// go-redis writes dials that fail to stderr through a logger that the whole
	// process shares. Here they are what the demo is about, and are shown in
	// its tables. Only a process's main may decide that, so run does not.
	redis.SetLogger(&logging.VoidLogger{})

	ctx := context.Background()
	if len(os.Args) < 2 || os.Args[1] != "run" { // which passes signals on
		ctx, _ = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // until the end
	}
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if code == exitSignal+int(syscall.SIGINT) {
		leash.EndOf(syscall.SIGINT)
	}
	os.Exit(code)
}
