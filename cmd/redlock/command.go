package main

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

// newProgram completes root, a program with its subcommands: it adds version, man, completion and
// help, and words mistakes in the command line. release is the version that was built in, if any;
// manual has the pages in a folder man.
func newProgram(root *cobra.Command, release string, manual fs.FS) *cobra.Command {
	info, _ := debug.ReadBuildInfo()
	root.Version = versionOf(release, info) // --version
	if root.Args == nil {
		root.Args = knownCommand
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SuggestionsMinimumDistance = 2                // cobra's default, where it suggests by itself
	root.SilenceErrors, root.SilenceUsage = true, true // run prints an error, once
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.AddCommand(newMan(root.Name(), manual), newVersion(release))
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	return root
}

// ownSignals is an annotation of a subcommand that handles signals by itself. The context of
// every other one ends at SIGINT and SIGTERM.
const ownSignals = "signals"

// execute runs root as this process's command line says, and returns the exit status.
func execute(root *cobra.Command) int {
	ctx, args := context.Background(), os.Args[1:]
	if cmd, _, err := root.Find(args); err != nil || cmd.Annotations[ownSignals] == "" {
		ctx, _ = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // until the end
	}
	return run(ctx, root, args, os.Stdout, os.Stderr)
}

// run runs a command line and returns the exit status. After an error it has written exactly one
// line to stderr, or none for an error without a text, and nothing that it started still runs.
func run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if err.Error() != "" {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", root.Name(), plain.Line(err))
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return exitUsage
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.code
	}
	return exitFailed
}

// knownCommand is reached with an argument only if the argument names no command.
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
	return usagef("no command %q%s (see %s --help)", args[0], hint, root.Name())
}

// knownTopic refuses a topic to which cobra's help answers with the help of the root, or of the
// command before an unknown word.
func knownTopic(help *cobra.Command, args []string) error {
	if _, unknown, err := help.Root().Find(args); err != nil || len(unknown) > 0 {
		return usagef("no help for %q (see %s --help)", strings.Join(args, " "), help.Root().Name())
	}
	return nil
}
