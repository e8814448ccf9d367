// Package cli is what all commands of this project share: the root command and its help, exit
// statuses, mistakes in the command line, versions, manual pages and JSON.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/plain"
)

// Program completes root, a program with its subcommands: it adds version, man, completion and
// help, and words mistakes in the command line. release is the version that was built in, if any;
// manual has the pages in a folder man.
func Program(root *cobra.Command, release string, manual fs.FS) *cobra.Command {
	info, _ := debug.ReadBuildInfo()
	root.Version = versionOf(release, info) // --version
	if root.Args == nil {
		root.Args = KnownCommand
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SuggestionsMinimumDistance = 2                // cobra's default, where it suggests by itself
	root.SilenceErrors, root.SilenceUsage = true, true // Run prints an error, once
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &UsageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.AddCommand(newMan(root.Name(), manual), newVersion(release))
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	return root
}

// OwnSignals is an annotation of a subcommand that handles signals by itself. The context of
// every other one ends at SIGINT and SIGTERM.
const OwnSignals = "signals"

// Main runs root as this process's command line says, and returns the exit status.
func Main(root *cobra.Command) int {
	ctx, args := context.Background(), os.Args[1:]
	if cmd, _, err := root.Find(args); err != nil || cmd.Annotations[OwnSignals] == "" {
		ctx, _ = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // until the end
	}
	return Run(ctx, root, args, os.Stdout, os.Stderr)
}

// Run runs a command line and returns the exit status. After an error it has written exactly one
// line to stderr, or none for an error without a text, and nothing that it started still runs.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", root.Name(), plain.Line(err))
	}
	return Status(err)
}

// Status returns the exit status of a command that ends with err.
func Status(err error) int {
	if err == nil {
		return ExitOK
	}
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		return ExitUsage
	}
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		return exit.Code
	}
	return ExitFailed
}

// Warner returns a function that writes a warning of redlock to w, in one line.
func Warner(w io.Writer) func(text string) {
	return func(text string) { _, _ = fmt.Fprintf(w, "redlock: warning: %s\n", plain.Printable(text)) }
}

// KnownCommand refuses any argument. cobra calls it with one only if the argument names no command.
func KnownCommand(root *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(args[0], "://"):
		return Usagef("masters are given with --nodes, after a command (see %s --help)", root.Name())
	}
	hint := ""
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %s", strings.Join(near, " or "))
	}
	return Usagef("no command %q%s (see %s --help)", args[0], hint, root.Name())
}

// knownTopic refuses a topic that cobra does not know. cobra would show the help of the root, or of
// the command before an unknown word.
func knownTopic(help *cobra.Command, args []string) error {
	if _, unknown, err := help.Root().Find(args); err != nil || len(unknown) > 0 {
		return Usagef("no help for %q (see %s --help)", strings.Join(args, " "), help.Root().Name())
	}
	return nil
}
