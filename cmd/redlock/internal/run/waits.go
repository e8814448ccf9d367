package run

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

// Wait lets another subcommand wait for a lock as run does: with the same flags, the same lines on
// stderr, and the same exit statuses.
type Wait struct{ flags }

// Register adds the flags to those of a command. There is no default for --ttl.
func (w *Wait) Register(set *pflag.FlagSet) {
	w.Flags.Register(set)
	set.Var(&w.ttl, "ttl", "required: how long the lock lasts unless it is\nextended or released, from 1s up")
	set.VarP(&w.wait, "wait", "w", "how long to wait for the lock; 0 is -n\n(default for ever)")
	set.BoolVarP(&w.nonblock, "nonblock", "n", false, "do not wait if somebody else has the lock")
	set.IntVarP(&w.conflict, "conflict-exit-code", "E", cli.ExitBusy, "status if somebody has the lock")
	set.BoolVar(&w.fair, "fair", false, "leave a free lock to clients that wait for it")
	set.BoolVar(&w.fencing, "fencing", false, "get a fencing token, which --json shows")
	set.Var(&w.guard, "restart-guard", "the longest ttl in use on these masters: those\nthat may have forgotten locks do not vote\n(default off)")
	set.StringVar(&w.owner, "owner", "", "how redlock status names this holder (default\nthe host's name and redlock's process id)")
	set.BoolVarP(&w.verbose, "verbose", "v", false, "tell on stderr what happens")
	set.BoolVarP(&w.quiet, "quiet", "q", false, "tell nothing on stderr but errors")
	for _, name := range []string{"ttl", "wait", "restart-guard"} {
		set.Lookup(name).DefValue = ""
	}
}

// Check refuses wrong flags before anything is done.
func (w *Wait) Check(given func(string) bool) error {
	if !given("ttl") {
		return cli.Usagef("--ttl is missing: how long the lock lasts unless it is extended or released")
	}
	return w.checkFlags(given)
}

// TTL returns --ttl.
func (w *Wait) TTL() time.Duration { return time.Duration(w.ttl) }

// Acquire waits for the lock, as the flags say, and calls held with it. Signals end the wait. While
// held runs they do nothing, and a pipe that nobody reads is an error of the write.
func (w *Wait) Acquire(ctx context.Context, key string, stderr io.Writer, held func(*redlock.Redlock, *redlock.Lock) error) error {
	if !w.quiet {
		w.Warnings = stderr
	}
	p := newPrinter(stderr, w.verbose, w.quiet)
	defer p.close()
	signals := make(chan os.Signal, 8)
	notify(signals, heeded(leash.Endings()))
	defer signal.Stop(signals)
	notify(make(chan os.Signal, 1), heeded([]os.Signal{syscall.SIGPIPE}))

	locks, err := w.openUnless(ctx, signals, w.config(p))
	if err != nil {
		return p.fail(err)
	}
	lock, err := w.acquire(context.WithoutCancel(ctx), locks, key, signals, p)
	if errors.Is(err, errAtOnce) {
		// A master may have granted the lock already, and nobody has its handle.
		p.warn("the lock may be held until --ttl %v is over: see redlock status", w.TTL())
		return p.fail(err)
	}
	defer masterlist.Leave(locks)
	if err != nil {
		return p.fail(err)
	}
	return p.fail(held(locks, lock))
}
