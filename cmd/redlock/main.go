// Command redlock shows quorum locks at work, on in-memory Redis masters of its
// own or on real ones.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	// go-redis writes dials that fail to stderr through a logger that the whole
	// process shares. Here they are what the demo is about, and are shown in
	// its tables. Only a process's main may decide that, so run does not.
	redis.SetLogger(&logging.VoidLogger{})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
