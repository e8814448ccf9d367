package run

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
)

// Elect returns the subcommand elect: run for one term after the other. It is no mode of run, as
// run's flags for giving up (-n, -w, -E), those for once per firing, and two of its exit statuses
// would mean nothing then.
func Elect() *cobra.Command {
	f := flags{ttl: cli.Duration(runTTL), grace: -1, standby: true}
	cmd := &cobra.Command{
		Use:   "elect [flags] KEY -- command [args...]",
		Short: "Run a command on one host at a time, and stand by on the others",
		Long: `elect stands by until it leads: until it has the lock KEY. Then it runs the
command, and keeps the lock alive. Start it on every host that may lead. Those
that do not lead wait in a queue, and the first of them follows when the leader
ends, or once --ttl is over after its host died.

If the lock is lost, redlock ends the command before another host can lead, as
redlock run does, stands by again, and starts the command anew when it leads the
next time. It also stands by while too few masters answer, from the start on.

If the command ends by itself, elect releases the lock and exits with the
command's status, and the next host leads. A service manager can start elect
again.

Apart from that the command has and gets what redlock run gives it: see redlock
run --help for its environment, its signals, and the processes that it leaves
behind. SIGINT, SIGTERM, SIGHUP and SIGQUIT end elect while it stands by. While
the command runs, they are passed on to it. If the lock is lost after SIGINT,
SIGTERM or SIGQUIT was passed on, elect does not stand by again.

Exit status:

        the command's own, or 128+n if signal n ended it, or ended elect
        while it stood by
     64 the command line is wrong; nothing was done
     76 the lock was lost after a signal had asked the command to end
    126 the command cannot be executed
    127 the command was not found`,
		Example: `  redlock elect leader:scheduler -- /usr/local/bin/scheduler
  redlock elect --ttl 15s --fencing leader:mailer -- ./mailer
  redlock status leader:scheduler`,
		Args:              func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		RunE:              f.start,
		ValidArgsFunction: completeCommand,
		Annotations:       map[string]string{cli.OwnSignals: "elect passes them on"},
	}
	f.register(cmd.Flags())
	return cmd
}

// lead runs the command once for each term, until it ends by itself, or a signal asks it to end.
func lead(once func(say func(leash.Event)) error, p *printer) error {
	for {
		told := false // a signal that asks to end was passed on to the command
		err := once(func(e leash.Event) {
			told = told || e.What == leash.Forwarded && asksToEnd(e.Signal)
			p.event(e)
		})
		if lost := (*lostError)(nil); told || !errors.As(err, &lost) {
			return err
		}
		_ = p.fail(err)
		p.tell(eventStandingBy, "standing by")
	}
}

// asksToEnd reports whether a command that was sent this signal is to end. To many services SIGHUP
// says that they should read their configuration again.
func asksToEnd(s syscall.Signal) bool {
	return s != syscall.SIGHUP && slices.Contains(leash.Endings(), os.Signal(s))
}
