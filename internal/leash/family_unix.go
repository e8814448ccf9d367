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

func offspring() []int { return nil }

// absent reports that nobody is left of a group, by what it says to signal 0: macOS answers
// EPERM if those who are left are dead.
func absent(err error) bool { return err != nil }

// raise stops us, or all of our group, until we are continued; a signal that does not stop
// ends us. Package signal cannot bring back what signals do by default.
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

// orphaned cannot be told.
func orphaned() bool { return false }

// hurry has us run before others, if we may.
func hurry() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, -20) }
