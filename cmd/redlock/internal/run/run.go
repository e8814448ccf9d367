// Package run runs a command while it holds a lock.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/label"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

const (
	// runTTL outlasts most failovers of masters, and frees the lock of a dead host within half a
	// minute.
	runTTL = 30 * time.Second
	// ShortestTTL leaves room for renewals, killGrace and leastMargin.
	ShortestTTL = time.Second
	// killGrace is the default of --kill-grace, unless a third of --ttl is shorter.
	killGrace = 5 * time.Second
	// leastMargin is how long before the end of validity SIGKILL is sent; a twentieth of the ttl is
	// used if that is more. On a machine with ten times as much work as it could do, redlock was
	// seen to run 0.35 s late.
	leastMargin = 250 * time.Millisecond
)

type flags struct {
	masterlist.Flags
	ttl, wait, grace, guard cli.Duration
	atLeast                 cli.Duration
	keep                    bool // --keep-on-failure
	nonblock, fencing, fair bool
	clearNodes              bool
	conflict                int
	line, owner             string
	output
	standby bool // this is elect: wait and begin again, whatever happens to the lock
}

// Command returns the subcommand run.
func Command() *cobra.Command {
	f := flags{ttl: cli.Duration(runTTL), grace: -1}
	cmd := &cobra.Command{
		Use:   "run [flags] KEY -- command [args...]",
		Short: "Run a command while holding a lock",
		Long: `run acquires the lock KEY, runs the command, keeps the lock alive meanwhile, and
releases it when the command has ended. If another client has the lock, run
waits in a queue. A released lock goes to the first in the queue. A newcomer
that arrives in the instant in which the lock is free may get it first, unless
all clients give --fair.

The command has redlock's stdin, stdout and stderr, its ignored signals and the
niceness with which it was started. It gets a process group of its own. Its
environment has REDLOCK_KEY, REDLOCK_VALID_UNTIL (the time at which the lock
would end if it were never renewed) and, with --fencing, REDLOCK_FENCING_TOKEN.

If the lock cannot be renewed, redlock sends SIGTERM to the command --kill-grace
before the lock ends. It sends SIGKILL a twentieth of --ttl before the end, at
least 0.25s but at most half of --kill-grace, so that the command never runs
beside the next holder. If a majority of masters no longer has the lock, redlock
sends SIGKILL at once.

These signals go to the command's process group and, on Linux, to all processes
in redlock's session that the command has started. Processes that it leaves
behind are ended before the lock is released; start one that is to live on with
setsid(1).

With --at-least the lock stays taken after a command that was quick, until that
time is over, so that each firing of a timer runs it once, although the hosts'
clocks differ. redlock itself ends with the command. If the command fails, the
lock is released at once, so that another host whose timer fires later can try;
--keep-on-failure keeps it also then.

redlock passes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH
on to the command. While redlock waits for the lock, the first four end the
wait, and the others do nothing.

Exit status:

        the command's own, or 128+n if signal n ended it
     64 the command line is wrong; nothing was done
     69 no quorum: too few masters answered. Without --wait the first attempt
        needs a quorum; with --wait redlock tries until that time is over
     75 another client has the lock (--nonblock, --wait; see -E)
     76 the lock was lost; the command's own status does not count then
    126 the command cannot be executed
    127 the command was not found`,
		Example: `  redlock run nightly-report -- ./report.sh
  redlock run -n backup -- restic backup /srv
  redlock run --log-format json -v nightly-report -- ./report.sh
  redlock run -- -key-like-a-flag -- ./report.sh
  redlock run -w 10m --ttl 1m migrate -c 'make migrate && make check'`,
		Args:              func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		RunE:              f.start,
		ValidArgsFunction: completeCommand,
		Annotations:       map[string]string{cli.OwnSignals: "run passes them on"},
	}
	set := cmd.Flags()
	f.register(set)
	set.VarP(&f.wait, "wait", "w", "how long to wait for the lock; 0 is -n\n(default for ever)")
	set.BoolVarP(&f.nonblock, "nonblock", "n", false, "do not wait if somebody else has the lock")
	set.IntVarP(&f.conflict, "conflict-exit-code", "E", cli.ExitBusy, "status if somebody has the lock")
	set.Var(&f.atLeast, "at-least", "keep the lock for so long after it was\nacquired, even if the command ends sooner;\nnot if it fails (default off)")
	set.BoolVar(&f.keep, "keep-on-failure", false, "with --at-least, also if the command fails")
	set.Lookup("wait").DefValue, set.Lookup("at-least").DefValue = "", ""
	return cmd
}

// register adds the flags that run and elect share.
func (f *flags) register(set *pflag.FlagSet) {
	f.Flags.Register(set)
	set.Var(&f.ttl, "ttl", "how long masters keep the lock, from 1s up;\nrenewed every third of it")
	set.Var(&f.grace, "kill-grace", "how long before the lock ends SIGTERM is sent,\nwhen it is being lost; at most half of --ttl;\n0 sends SIGKILL alone (default 5s, or a third\nof a shorter --ttl)")
	set.BoolVar(&f.fair, "fair", false, "leave a free lock to clients that wait for it;\nwith it on every client, first come is first\nserved")
	set.BoolVar(&f.clearNodes, "clear-env-nodes", false, "keep "+masterlist.NodesVariable+", which may have passwords,\nout of the command's environment")
	set.BoolVar(&f.fencing, "fencing", false, "give the command a fencing token")
	set.Var(&f.guard, "restart-guard", "the longest ttl in use on these masters: those\nthat may have forgotten locks do not vote\n(default off)")
	set.StringVar(&f.owner, "owner", "", "how redlock status names this holder (default\nthe host's name and redlock's process id)")
	set.StringVarP(&f.line, "command", "c", "", "a line for /bin/sh, in place of a command")
	f.output.register(set)
	for _, name := range []string{"kill-grace", "restart-guard"} {
		set.Lookup(name).DefValue = ""
	}
}

// start runs the command of a command line that check has found right.
func (f *flags) start(cmd *cobra.Command, args []string) error {
	argv := args[1:]
	switch {
	case cmd.Flags().Changed("command"):
		argv = []string{"/bin/sh", "-c", f.line}
	case cmd.ArgsLenAtDash() == 0: // a first -- stands before KEY, a second after it
		argv = args[2:]
	}
	return f.run(cmd.Context(), args[0], argv, cmd.ErrOrStderr())
}

// check refuses a wrong command line before anything is done.
func (f *flags) check(cmd *cobra.Command, args []string) error {
	set, dash, usage := cmd.Flags(), cmd.ArgsLenAtDash(), cmd.CommandPath()
	line := set.Changed("command")
	switch {
	case dash == 0 && !line && len(args) > 1 && args[1] == "--":
		// This is the second one; the first lets KEY begin with a dash.
		args = append([]string{args[0]}, args[2:]...)
	case dash == 0 && line && len(args) == 1:
	case dash == 0 && len(args) > 0:
		return cli.Usagef("KEY comes before the --: %s KEY -- command", usage)
	case len(args) == 0:
		return cli.Usagef("KEY is missing: %s KEY -- command (see %s --help)", usage, usage)
	}
	switch {
	case args[0] == "":
		return cli.Usagef("KEY is empty")
	case line && len(args) > 1:
		return cli.Usagef("-c is a command already, there must be none after KEY")
	case line && strings.TrimSpace(f.line) == "":
		return cli.Usagef("-c is empty")
	case line:
	case dash < 0 && len(args) > 1:
		return cli.Usagef("-- is missing between KEY and the command: %s KEY -- command", usage)
	case dash > 1:
		return cli.Usagef("one KEY comes before the --, not %d", dash)
	case len(args) == 1:
		return cli.Usagef("the command is missing: %s KEY -- command", usage)
	case args[1] == "":
		return cli.Usagef("the command is empty")
	}
	return f.checkFlags(set.Changed)
}

func (f *flags) checkFlags(given func(string) bool) error {
	ttl, grace := time.Duration(f.ttl), time.Duration(f.grace)
	if !given("kill-grace") {
		grace = min(killGrace, ttl/3)
		f.grace = cli.Duration(grace)
	}
	switch {
	case ttl < ShortestTTL:
		return cli.Usagef("--ttl %v is below %v", ttl, ShortestTTL)
	case grace < 0:
		return cli.Usagef("--kill-grace %v is negative", grace)
	case grace > ttl/2:
		return cli.Usagef("--kill-grace %v does not fit into --ttl %v: it can be half of it", grace, ttl)
	case given("wait") && f.nonblock:
		return cli.Usagef("--nonblock and --wait exclude each other")
	case f.wait < 0:
		return cli.Usagef("--wait %v is negative", time.Duration(f.wait))
	case label.Check(f.owner) != nil:
		return cli.Usagef("--owner %v", label.Check(f.owner))
	case f.atLeast < 0:
		return cli.Usagef("--at-least %v is negative", time.Duration(f.atLeast))
	case given("restart-guard") && f.atLeast > f.guard:
		return cli.Usagef("--at-least %v is above --restart-guard %v: a master could forget the lock", time.Duration(f.atLeast), time.Duration(f.guard))
	case f.keep && f.atLeast == 0:
		return cli.Usagef("--keep-on-failure needs --at-least")
	case f.conflict < 0 || f.conflict > 255:
		return cli.Usagef("--conflict-exit-code %d is not in [0, 255]", f.conflict)
	case given("restart-guard") && time.Duration(f.guard) < ttl:
		return cli.Usagef("--restart-guard %v is below --ttl %v: it is the longest ttl in use", time.Duration(f.guard), ttl)
	case f.verbose && f.quiet:
		return cli.Usagef("--verbose and --quiet exclude each other")
	case f.format != "text" && f.format != "json":
		return cli.Usagef("--log-format %q is neither text nor json", f.format)
	}
	if given("wait") && f.wait == 0 {
		f.nonblock = true
	}
	if !given("wait") {
		f.wait = -1
	}
	return nil
}

// margin returns how long before the end of validity SIGKILL is sent. At least half of the grace is
// left for the command.
func (f *flags) margin() time.Duration {
	margin := max(leastMargin, time.Duration(f.ttl)/20)
	if f.grace > 0 {
		margin = min(margin, time.Duration(f.grace)/2)
	}
	return margin
}

func (f *flags) config(p *printer) redlock.Config {
	retention := time.Duration(0) // the default
	if f.atLeast > 0 {
		retention = 7*24*time.Hour + time.Duration(f.atLeast) + time.Duration(f.ttl) // as tokens must outlive the lock
	}
	return redlock.Config{
		FenceRetention: retention,
		// This is longer than the library's default: the first answers include the time to connect.
		// Only a hung majority makes a caller wait this long.
		NodeTimeout:  min(masterlist.NodeTimeout, time.Duration(f.ttl)/4),
		Owner:        f.owner,
		Fencing:      f.fencing,
		Fair:         f.fair,
		RestartGuard: time.Duration(f.guard),
		Logger:       p.logger(),
	}
}

// refused returns the error of a failed acquisition, with its exit status.
func (f *flags) refused(key string, err error) error {
	var quorum *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrDuplicateNode):
		return &cli.UsageError{Err: err}
	case errors.Is(err, redlock.ErrHeld):
		if f.quiet {
			return &cli.ExitError{Code: f.conflict}
		}
		return &cli.ExitError{Code: f.conflict, Err: fmt.Errorf("%s is held by another client", key)}
	case errors.As(err, &quorum), errors.Is(err, context.DeadlineExceeded):
		// The deadline may pass before any master was asked.
		return &cli.ExitError{Code: cli.ExitNoQuorum, Err: err}
	}
	return &cli.UsageError{Err: err} // an argument is wrong; no master was asked
}

// The environment variables of a command that runs under a lock.
const (
	KeyVariable   = "REDLOCK_KEY"
	TokenVariable = "REDLOCK_FENCING_TOKEN"
	UntilVariable = "REDLOCK_VALID_UNTIL"
)

// under returns the environment of a command that runs under the lock. It removes the variables of
// an outer redlock run.
func under(lock *redlock.Lock, environ []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == KeyVariable || name == TokenVariable || name == UntilVariable
	})
	env = append(env, KeyVariable+"="+lock.Key(), UntilVariable+"="+Stamp(lock.Until()))
	if token := lock.FencingToken(); token != 0 {
		env = append(env, fmt.Sprintf("%s=%d", TokenVariable, token))
	}
	return env
}

// environ returns redlock's environment, without the masters' URLs if --clear-env-nodes is set.
func (f *flags) environ(environ []string) []string {
	if !f.clearNodes {
		return environ
	}
	return slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(v, masterlist.NodesVariable+"=") })
}

// Stamp formats a time to the millisecond, for people and scripts.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
