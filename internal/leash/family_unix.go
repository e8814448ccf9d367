//go:build unix && !linux

package leash

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

const adopts = false

func adopt() {}

func offspring(int) []int { return nil }

// stopReason guesses the signal behind a SIGSTOP, which the system does not report here (see
// family_linux.go). While the command has the terminal, a SIGSTOP counts as ^Z. The first SIGSTOP
// in the foreground counts as a request for the terminal.
func (g *group) stopReason() syscall.Signal {
	switch {
	case g.lent:
		return syscall.SIGTSTP
	case g.state == nil && g.ours(): // the terminal was never lent
		return syscall.SIGTTIN
	}
	return syscall.SIGSTOP
}

// absent reports whether no process of a group is left. err is the error of sending it signal 0.
// macOS returns EPERM if only dead processes are left.
func absent(err error) bool { return err != nil }

// raise stops us, or all of our group, until we are continued. A signal that does not stop
// processes ends us. For the others raise sends SIGSTOP, as package signal cannot restore the
// default action of a signal that has had a handler.
func raise(s syscall.Signal, all bool) {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	who := os.Getpid()
	if all {
		who = 0
	}
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		s = syscall.SIGSTOP
	default:
		signal.Reset(s)
	}
	if syscall.Kill(who, s) != nil {
		return
	}
	select {
	case <-resumed:
	case <-time.After(time.Second):
	}
}

// orphaned returns false: it is not implemented here.
func orphaned() bool { return false }

// firstDispositions returns nil: it is not implemented here.
func firstDispositions() []uintptr { return nil }

// ignoredNow returns false: it is not implemented here.
func ignoredNow(syscall.Signal) bool { return false }

// hurry raises our priority, if we have the right to, and reports whether it could.
func hurry() bool {
	if inherited == nil {
		if niceness, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
			inherited = &niceness
		}
	}
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, Niceness) == nil
}

// inherited is the niceness with which we were started, once hurry was called; nil before that.
var inherited *int

// calm gives us the niceness with which we were started, for a command that is about to start. The
// next hurry takes it away.
func calm() {
	if inherited != nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, *inherited)
	}
}
