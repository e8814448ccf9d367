package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/redlock"
)

const (
	// runTTL rides out most failovers of masters, and frees the lock of a dead host
	// within half a minute.
	runTTL = 30 * time.Second
	// shortestTTL is what renewals, killGrace and killMargin fit into.
	shortestTTL = time.Second
	// killGrace is the default; a third of a shorter ttl.
	killGrace = 5 * time.Second
	// leastMargin is how long before the end of validity SIGKILL is sent, or a twentieth
	// of the ttl if that is more. A machine that had ten times as much to do as it could
	// was seen to run us 0.35 s late.
	leastMargin = 250 * time.Millisecond
)

type runFlags struct {
	connection
	ttl, wait, grace, guard duration
	nonblock, fencing       bool
	conflict                int
	line                    string
	verbose, quiet          bool
}

func newRun() *cobra.Command {
	f := runFlags{ttl: duration(runTTL), grace: -1}
	cmd := &cobra.Command{
		Use:   "run [flags] KEY -- command [args...]",
		Short: "Run a command while holding a lock",
		Long: `run acquires the lock KEY, runs the command, keeps the lock alive meanwhile, and
releases it when the command has ended. If somebody else has the lock it waits
in a queue until it is its turn.

The command has redlock's stdin, stdout and stderr, a process group of its own,
and in its environment REDLOCK_KEY, REDLOCK_VALID_UNTIL (the end of the lock as
of its start; it is renewed) and, with --fencing, REDLOCK_FENCING_TOKEN.

If the lock cannot be renewed, SIGTERM goes to the command --kill-grace before
the lock ends, and SIGKILL some time before it ends (a twentieth of --ttl, or
0.25s, or half of --kill-grace), so that it never runs beside the next holder.
If a majority of masters has the lock no more, SIGKILL goes to it at once.

The command is its process group, and on Linux all in redlock's session that it
has started. What it leaves behind is ended before the lock is released; use
setsid(1) for what shall live on.

SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command. While redlock
waits for the lock they end the wait.

Exit status:

        the command's own, or 128+n if signal n ended it
     64 the command line is wrong; nothing was done
     69 no quorum: too few masters answered. Without --wait the first attempt
        must find one; with --wait it is tried until then
     75 somebody else has the lock (--nonblock, --wait; see -E)
     76 the lock was lost, whatever the command returned after that
    126 the command cannot be executed
    127 the command was not found`,
		Example: `  redlock run nightly-report -- ./report.sh
  redlock run -n backup -- restic backup /srv
  redlock run -w 10m --ttl 1m migrate -c 'make migrate && make check'`,
		Args: func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			argv := args[1:]
			if cmd.Flags().Changed("command") {
				argv = []string{"/bin/sh", "-c", f.line}
			}
			return f.run(cmd.Context(), args[0], argv, cmd.ErrOrStderr())
		},
	}
	set := cmd.Flags()
	f.connection.flags(set)
	set.Var(&f.ttl, "ttl", "how long masters keep the lock, from 1s up;\nrenewed every third of it")
	set.VarP(&f.wait, "wait", "w", "how long to wait for the lock; 0 is -n\n(default for ever)")
	set.BoolVarP(&f.nonblock, "nonblock", "n", false, "do not wait if somebody else has the lock")
	set.IntVarP(&f.conflict, "conflict-exit-code", "E", exitBusy, "status if somebody has the lock")
	set.Var(&f.grace, "kill-grace", "how long before the lock ends SIGTERM is sent,\nwhen it is being lost; at most half of --ttl;\n0 sends SIGKILL alone (default 5s, or a third\nof a shorter --ttl)")
	set.BoolVar(&f.fencing, "fencing", false, "give the command a fencing token")
	set.Var(&f.guard, "restart-guard", "the longest ttl in use on these masters: those\nthat may have forgotten locks do not vote\n(default off)")
	set.StringVarP(&f.line, "command", "c", "", "a line for /bin/sh, in place of a command")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "tell on stderr what happens")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "tell nothing on stderr but errors")
	for name, shown := range map[string]string{"wait": "", "kill-grace": "", "restart-guard": ""} {
		set.Lookup(name).DefValue = shown
	}
	return cmd
}

// check refuses what cannot work before anything is done.
func (f *runFlags) check(cmd *cobra.Command, args []string) error {
	set, dash := cmd.Flags(), cmd.ArgsLenAtDash()
	line := set.Changed("command")
	switch {
	case dash == 0 && len(args) > 0:
		return usagef("KEY comes before the --: redlock run KEY -- command")
	case len(args) == 0:
		return usagef("KEY is missing: redlock run KEY -- command (see redlock run --help)")
	case args[0] == "":
		return usagef("KEY is empty")
	case line && len(args) > 1:
		return usagef("-c is a command already, there must be none after KEY")
	case line && strings.TrimSpace(f.line) == "":
		return usagef("-c is empty")
	case line:
	case dash < 0 && len(args) > 1:
		return usagef("-- is missing between KEY and the command: redlock run KEY -- command")
	case dash > 1:
		return usagef("one KEY comes before the --, not %d", dash)
	case len(args) == 1:
		return usagef("the command is missing: redlock run KEY -- command")
	case args[1] == "":
		return usagef("the command is empty")
	}
	return f.checkFlags(set.Changed)
}

func (f *runFlags) checkFlags(given func(string) bool) error {
	ttl, grace := time.Duration(f.ttl), time.Duration(f.grace)
	if !given("kill-grace") {
		grace = min(killGrace, ttl/3)
		f.grace = duration(grace)
	}
	switch {
	case ttl < shortestTTL:
		return usagef("--ttl %v is below %v", ttl, shortestTTL)
	case grace < 0:
		return usagef("--kill-grace %v is negative", grace)
	case grace > ttl/2:
		return usagef("--kill-grace %v does not fit into --ttl %v: it can be half of it", grace, ttl)
	case given("wait") && f.nonblock:
		return usagef("--nonblock and --wait exclude each other")
	case f.wait < 0:
		return usagef("--wait %v is negative", time.Duration(f.wait))
	case f.conflict < 0 || f.conflict > 255:
		return usagef("--conflict-exit-code %d is not in [0, 255]", f.conflict)
	case given("restart-guard") && time.Duration(f.guard) < ttl:
		return usagef("--restart-guard %v is below --ttl %v: it is the longest ttl in use", time.Duration(f.guard), ttl)
	case f.verbose && f.quiet:
		return usagef("--verbose and --quiet exclude each other")
	}
	if given("wait") && f.wait == 0 {
		f.nonblock = true
	}
	if !given("wait") {
		f.wait = -1
	}
	return nil
}

// margin is how long before the end of validity SIGKILL is sent. Half of the grace is kept
// for the command.
func (f *runFlags) margin() time.Duration {
	margin := max(leastMargin, time.Duration(f.ttl)/20)
	if f.grace > 0 {
		margin = min(margin, time.Duration(f.grace)/2)
	}
	return margin
}

func (f *runFlags) config(j *journal) redlock.Config {
	return redlock.Config{
		// Longer than the library's: the first answers are those of connections that
		// have to be made, and nothing but a hung majority makes anybody wait for it.
		NodeTimeout:  min(nodeTimeout, time.Duration(f.ttl)/4),
		Fencing:      f.fencing,
		RestartGuard: time.Duration(f.guard),
		Logger:       j.logger(),
	}
}

// refused is why there is no lock, as an exit status.
func (f *runFlags) refused(key string, err error) error {
	var quorum *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrDuplicateNode):
		return &usageError{err}
	case errors.Is(err, redlock.ErrHeld):
		if f.quiet {
			return &exitError{code: f.conflict}
		}
		return &exitError{f.conflict, fmt.Errorf("%s is held by another client", key)}
	case errors.As(err, &quorum), errors.Is(err, context.DeadlineExceeded): // before anybody was asked
		return &exitError{exitNoQuorum, err}
	}
	return &usageError{err} // what an argument is wrong with; nobody was asked
}

// The variables of a command that runs under a lock.
const (
	keyVariable   = "REDLOCK_KEY"
	tokenVariable = "REDLOCK_FENCING_TOKEN"
	untilVariable = "REDLOCK_VALID_UNTIL"
)

// under is the environment of a command that runs under the lock, and under no other one:
// those of an outer redlock run are not its own.
func under(lock *redlock.Lock, environ []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == keyVariable || name == tokenVariable || name == untilVariable
	})
	env = append(env, keyVariable+"="+lock.Key(), untilVariable+"="+stamp(lock.Until()))
	if token := lock.FencingToken(); token != 0 {
		env = append(env, fmt.Sprintf("%s=%d", tokenVariable, token))
	}
	return env
}

// stamp is a point in time for people and scripts.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
