package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a mistake in the command line; nothing has been done.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// noArguments does not quote the argument that it refuses: where --nodes was forgotten, that is
// a URL with a password.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments but flags (see %s --help)", cmd.Name(), cmd.CommandPath())
	}
	return nil
}
