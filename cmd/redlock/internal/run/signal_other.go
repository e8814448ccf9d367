//go:build !unix

package run

import "syscall"

// signalName returns what the system calls a signal.
func signalName(s syscall.Signal) string { return s.String() }
