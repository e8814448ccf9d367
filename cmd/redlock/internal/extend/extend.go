// Package extend prolongs the lock of a handle.
package extend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/cmd/redlock/internal/acquire"
	"github.com/quorumlock/redlock/cmd/redlock/internal/handlefile"
	"github.com/quorumlock/redlock/cmd/redlock/internal/run"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/plain"
)

type flags struct {
	handlefile.Flags
	ttl  cli.Duration
	json bool
}

// Command returns the subcommand extend.
func Command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "extend --handle-file FILE [flags]",
		Short: "Prolong the lock of a handle",
		Long: `extend makes the lock of a handle last for --ttl from now. It never shortens the
lock. It also proves that the lock is still held: a majority of the masters has
it. So extend belongs before each step that must not run without the lock.

The handle is read from a file that redlock acquire has written, or from stdin.
The file gets a new handle, all at once. The old one can still be used. If the
handle came from stdin, the new one is printed. The prefix of the key is in the
handle.

Exit status:
   0  extended
   1  extended, but the new handle could not be printed
  64  the command line is wrong, or the file has no handle; no master was asked
  69  too few masters answered; the lock lasts no shorter than before
  76  the lock is not held any more: it was released, or has expired`,
		Example: `  redlock extend --handle-file deploy.lock
  redlock extend --handle-file deploy.lock --ttl 1h`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("handle-file"):
				return cli.Usagef("--handle-file is missing: the file that redlock acquire has written (see redlock extend --help)")
			case cmd.Flags().Changed("ttl") && time.Duration(f.ttl) < run.ShortestTTL:
				return cli.Usagef("--ttl %v is below %v", time.Duration(f.ttl), run.ShortestTTL)
			}
			return cli.NoArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Warn = cli.Warner(cmd.ErrOrStderr())
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.Register(cmd.Flags())
	cmd.Flags().Var(&f.ttl, "ttl", "how long the lock lasts from now, from 1s up\n(default as was last asked for)")
	cmd.Flags().Lookup("ttl").DefValue = ""
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object, for machines")
	return cmd
}

func (f *flags) run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	locks, lock, err := f.Resume(ctx, stdin, func(last time.Duration) time.Duration {
		if f.ttl > 0 {
			return time.Duration(f.ttl)
		}
		return last
	})
	if err != nil {
		return err
	}
	defer masterlist.Leave(locks)
	report := acquire.NewReport(lock, "")
	handle, err := lock.Detach()
	if err != nil {
		return err
	}
	if f.File == handlefile.Stdin {
		report.Handle = handle
	} else if err := handlefile.Replace(f.File, handle); err != nil {
		f.Warn(fmt.Sprintf("the lock was extended, and its old handle stays in %s, which cannot be replaced: %s", f.File, plain.Line(err)))
	}
	switch {
	case f.json:
		err = cli.PrintJSON(stdout, report)
	case report.Handle != "":
		_, err = fmt.Fprintln(stdout, handle)
	}
	if err != nil {
		return errors.Join(errors.New("the lock was extended, but the handle could not be printed"), err)
	}
	return nil
}
