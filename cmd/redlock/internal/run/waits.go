package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
type Wait struct {
	flags
	p *printer
}

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
	w.output.register(set)
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

// Report does something for a lock. It writes the messages of Acquire, and the error, to stderr as
// the flags say, and returns an error without a text.
func (w *Wait) Report(key string, stderr io.Writer, do func() error) error {
	w.p = newPrinter(stderr, key, w.output)
	defer w.p.close()
	w.Warn = w.p.exposed
	return w.p.fail(do())
}

// Acquire waits for the lock, as the flags say, and calls held with it. It is called within Report.
// Signals end the wait. While held runs they do nothing, and a pipe that nobody reads is an error of
// the write.
func (w *Wait) Acquire(ctx context.Context, key string, held func(*redlock.Redlock, *redlock.Lock) error) error {
	signals := make(chan os.Signal, 8)
	notify(signals, heeded(leash.Endings()))
	defer signal.Stop(signals)
	notify(make(chan os.Signal, 1), heeded([]os.Signal{syscall.SIGPIPE}))

	locks, err := w.openUnless(ctx, signals, w.config(w.p))
	if err != nil {
		return err
	}
	lock, err := w.acquire(context.WithoutCancel(ctx), locks, key, signals, w.p)
	if errors.Is(err, errAtOnce) {
		// A master may have granted the lock already, and nobody has its handle.
		w.p.warn(eventMaybeHeld, fmt.Sprintf("the lock may be held until --ttl %v is over: see redlock status", w.TTL()), slog.Duration("ttl", w.TTL()))
		return err
	}
	defer masterlist.Leave(locks)
	if err != nil {
		return err
	}
	return held(locks, lock)
}
