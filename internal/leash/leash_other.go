//go:build !unix

package leash

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Run returns errors.ErrUnsupported: without process groups and signals a command cannot
// be ended together with what it has started.
func Run(Command, Lease, <-chan os.Signal, func(Event)) (Outcome, error) {
	return Outcome{}, fmt.Errorf("%s has no process groups: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Signals is what Run takes.
func Signals() []os.Signal { return []os.Signal{os.Interrupt} }

// EndOf does nothing.
func EndOf(syscall.Signal) {}

// Foreground takes it for granted.
func Foreground() bool { return true }
