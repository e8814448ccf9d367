//go:build unix

package run

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName returns the name of a signal, such as SIGTERM.
func signalName(s syscall.Signal) string { return unix.SignalName(s) }
