//go:build unix

package leash

import (
	"os/signal"
	"syscall"
)

// ignore is SIG_IGN.
const ignore = 1

// Inherit ignores the signals that were ignored when we were started. A program that does not
// handle signals does so by itself, but Go does so for SIGHUP and SIGINT only. The command
// ignores the signals that we ignore. Call Inherit before signal.Notify. On systems other than
// Linux it does nothing.
//
// Inherit leaves out SIGCHLD, as we need it to wait for the command, and SIGURG, as Go needs it
// and it is ignored by default.
func Inherit() {
	for s, handler := range firstDispositions() {
		if s := syscall.Signal(s); handler == ignore && s != syscall.SIGCHLD && s != syscall.SIGURG {
			signal.Ignore(s)
		}
	}
	// Go has not set a handler for these.
	for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if ignoredNow(s) {
			signal.Ignore(s)
		}
	}
}
