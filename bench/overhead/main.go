// Command overhead measures what a lock costs the command that runs under it:
//
//	go -C bench run ./overhead            300 turns, a quarter of a minute
//	go -C bench run ./overhead -turns 50
//
// It builds cmd/redlock, starts five redis-server processes on the loopback interface, and
// runs `redlock run KEY -- true` and, for comparison, `flock FILE true`. Each turn measures
// everything once. The order changes from turn to turn, so that other work of the machine
// affects all of them. The goal is that a quorum of five costs less than three times flock(1),
// which needs no server, plus a round trip to each of the five.
//
// The exit status is 1 if something does not run or leaves a key on a master. It does not
// depend on the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/bench/masters"
)

const (
	// nodes is the number of masters.
	nodes = 5
	// patience is how long masters have to remove a lock; well below its ttl.
	patience = time.Second
)

func main() {
	turns := flag.Int("turns", 300, "how often everything is measured")
	flag.Parse()
	if flag.NArg() > 0 || *turns < 1 {
		fmt.Fprintln(os.Stderr, "overhead: takes no arguments, and at least one turn")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills this process; the servers end with it even then.
	context.AfterFunc(ctx, stop)
	if err := measure(ctx, *turns, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// measure starts masters, measures and prints.
func measure(ctx context.Context, turns int, out io.Writer) error {
	set, err := masters.Launch(nodes)
	if err != nil {
		return err
	}
	defer set.Stop()
	return compare(ctx, set, turns, out)
}

// compare is like measure, but uses masters that are running.
func compare(ctx context.Context, set *masters.Set, turns int, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "redlock-overhead-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	subjects, done, err := subjects(ctx, set.Addrs(nodes), dir)
	if err != nil {
		return err
	}
	defer done()
	if err := take(ctx, subjects, turns); err != nil {
		return err
	}
	if err := set.AwaitEmpty(ctx, patience); err != nil {
		return err
	}
	return report(out, subjects)
}
