// Package acquire acquires a lock that outlives its process, and prints the handle by which other
// processes go on with it.
package acquire

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/cmd/redlock/internal/handlefile"
	"github.com/quorumlock/redlock/cmd/redlock/internal/run"
	"github.com/quorumlock/redlock/cmd/redlock/internal/status"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/redlock"
)

type flags struct {
	run.Wait
	file string
	json bool
}

// Command returns the subcommand acquire.
func Command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "acquire --ttl DURATION [flags] KEY",
		Short: "Acquire a lock that outlives this process",
		Long: `acquire acquires the lock KEY, prints a handle, and exits. The lock stays until
redlock release gets the handle, or until --ttl is over. redlock extend prolongs
it. So one lock covers the lines of a shell script, or the steps of a CI job.

Nothing renews the lock meanwhile, and nothing ends the work when the lock is
lost. If one command can do the work, use redlock run, which does both.

The handle is a secret: it can be used to release the lock. It is the only thing
on stdout. With --handle-file it is written to a new file instead, which only
its owner may read. If the file exists, nothing is done, as it may have the
handle of a lock that is held. If the handle cannot be written, the lock is
released again.

acquire waits as redlock run does: a released lock goes to the first in the
queue.

Exit status:
     0  the lock is held, and the handle is written
     1  the handle could not be written; the lock was released
    64  the command line is wrong; no master was asked
    69  no quorum: too few masters answered
    75  another client has the lock (--nonblock, --wait; see -E)
  128+n signal n ended the wait`,
		Example: `  redlock acquire deploy --ttl 10m --handle-file deploy.lock
  handle=$(redlock acquire deploy --ttl 10m -w 1h)`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := status.OneKey(cmd, args); err != nil {
				return err
			}
			if cmd.Flags().Changed("handle-file") && f.file == "" {
				return cli.Usagef("--handle-file is empty")
			}
			return f.Check(cmd.Flags().Changed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.Report(args[0], cmd.ErrOrStderr(), func() error {
				return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
			})
		},
		Annotations: map[string]string{cli.OwnSignals: "they end the wait"},
	}
	f.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.file, "handle-file", "", "write the handle to this new file, with mode\n600, and not to stdout; - is stdout")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object, for machines")
	return cmd
}

// Report is the object of --json, also that of extend.
type Report struct {
	Key    string `json:"key"`
	Until  string `json:"valid_until"` // unless the lock is extended
	Token  int64  `json:"fencing_token,omitempty"`
	Handle string `json:"handle,omitempty"` // empty if it is in a file
}

// NewReport describes a lock that is held until then.
func NewReport(lock *redlock.Lock, handle string) Report {
	return Report{Key: lock.Key(), Until: run.Stamp(lock.Until()), Token: lock.FencingToken(), Handle: handle}
}

func (f *flags) run(ctx context.Context, key string, stdout io.Writer) (err error) {
	var file *os.File
	if f.file != "" && f.file != handlefile.Stdin {
		if file, err = handlefile.Create(f.file); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				_ = file.Close() // an error if it is closed already
				_ = os.Remove(f.file)
			}
		}()
	}
	return f.Acquire(ctx, key, func(locks *redlock.Redlock, lock *redlock.Lock) error {
		handle, err := lock.Detach()
		if err != nil {
			_ = lock.Release(ctx) // it goes on if the key is too long for a handle
			return &cli.ExitError{Code: cli.ExitFailed, Err: err}
		}
		if err := f.hand(file, stdout, lock, handle); err != nil {
			return &cli.ExitError{Code: cli.ExitFailed, Err: f.takeBack(locks, handle, err)}
		}
		return nil
	})
}

// hand writes the handle where the flags say.
func (f *flags) hand(file *os.File, stdout io.Writer, lock *redlock.Lock, handle string) error {
	if file != nil {
		if err := handlefile.Write(file, handle); err != nil {
			return err
		}
	}
	var err error
	switch {
	case f.json && file != nil:
		err = cli.PrintJSON(stdout, NewReport(lock, ""))
	case f.json:
		err = cli.PrintJSON(stdout, NewReport(lock, handle))
	case file == nil:
		_, err = fmt.Fprintln(stdout, handle)
	}
	return err
}

// takeBack releases the lock of a handle that nobody has got, and returns why.
func (f *flags) takeBack(locks *redlock.Redlock, handle string, why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := locks.Resume(ctx, handle, f.TTL())
	if err == nil {
		err = lock.Release(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w; and the lock, which nobody can release now, lasts for %v at most: %w", why, f.TTL(), err)
	}
	return fmt.Errorf("%w; the lock was released", why)
}
