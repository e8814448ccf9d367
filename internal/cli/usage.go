package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a mistake in the command line; nothing has been done.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// NoArguments refuses any argument. It does not quote it: if --nodes was forgotten, it is a URL
// with a password.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments but flags (see %s --help)", cmd.Name(), cmd.CommandPath())
	}
	return nil
}
