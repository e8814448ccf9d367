package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/plain"
)

// run is the whole command: it returns the exit status. After an error it has written
// exactly one line to stderr, or none for one without a text, and nothing that it started
// still runs.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if err.Error() != "" {
		_, _ = fmt.Fprintf(stderr, "redlock: %s\n", plain.Line(err))
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return exitUsage
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.code
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	info, _ := debug.ReadBuildInfo()
	root := &cobra.Command{
		Use:     "redlock",
		Version: versionOf(info), // --version
		Short:   "Locks that a majority of independent Redis masters agrees on",
		Long: `redlock runs commands under locks that a majority of independent Redis masters
agrees on: they outlive the loss of any minority of the masters.`,
		Example: `  redlock demo
  redlock run nightly-report -- ./report.sh`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2, // cobra's default, where it suggests by itself

		SilenceErrors: true, // run prints them, once
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"locks", "Locks:", []*cobra.Command{newRun(), newStatus(), newRelease()}},
		{"masters", "Masters:", []*cobra.Command{newNodes()}},
		{"shows", "To see how it works, without any masters of yours:", []*cobra.Command{newDemo(), newSim()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
		}
		root.AddCommand(group.commands...)
	}
	root.AddCommand(newMan(), newVersion())
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	return root
}

// knownTopic refuses what cobra's help answers with the help of all, or of the command in
// front of it.
func knownTopic(help *cobra.Command, args []string) error {
	if _, unknown, err := help.Root().Find(args); err != nil || len(unknown) > 0 {
		return usagef("no help for %q (see redlock --help)", strings.Join(args, " "))
	}
	return nil
}

// usageError is a mistake in the command line; nothing has been done.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// knownCommand is reached with an argument only if it names no command.
func knownCommand(root *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(args[0], "://"):
		return usagef("masters are given with redlock demo --nodes")
	}
	hint := ""
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %s", strings.Join(near, " or "))
	}
	return usagef("no command %q%s (see redlock --help)", args[0], hint)
}

// noArguments does not quote what it refuses: where --nodes was forgotten it is
// a URL with a password.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments but flags (see %s --help)", cmd.Name(), cmd.CommandPath())
	}
	return nil
}
