//go:build !unix

package leash

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Run returns errors.ErrUnsupported: without process groups and signals it could not end a
// command together with the processes that the command has started.
func Run(Command, Lease, <-chan os.Signal, func(Event)) (Outcome, error) {
	return Outcome{}, fmt.Errorf("%s has no process groups: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Endings returns the signals that ask a program to end.
func Endings() []os.Signal { return []os.Signal{os.Interrupt} }

// Messages returns none.
func Messages() []os.Signal { return nil }

// Inherit does nothing.
func Inherit() {}

// EndOf does nothing.
func EndOf(syscall.Signal) {}

// Foreground returns true: it is not implemented here.
func Foreground() bool { return true }
